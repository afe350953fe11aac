import { EXIT } from "./exit-code.ts";

/** Ends the program with a message, what to do about it, a line each, and an exit code. */
export class CliFailure extends Error {
  override readonly name = "CliFailure";
  readonly advice: readonly string[];
  readonly exitCode: number;

  constructor(message: string, advice: readonly string[] = [], exitCode: number = EXIT.failed) {
    super(message);
    this.advice = advice;
    this.exitCode = exitCode;
  }
}
