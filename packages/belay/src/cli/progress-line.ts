/** One line that is drawn anew on a terminal; elsewhere each new text is a line of its own. */
export class ProgressLine {
  #last = "";

  show(text: string): void {
    if (text === this.#last) return;
    this.#last = text;
    process.stderr.write(process.stderr.isTTY ? `\r\u001B[2K${text}` : `${text}\n`);
  }

  /** Ends the line, so that what follows starts on its own. */
  end(): void {
    if (this.#last !== "" && process.stderr.isTTY) process.stderr.write("\n");
    this.#last = "";
  }
}
