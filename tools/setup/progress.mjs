// One line per step: a spinner with the time that has passed on a terminal, plain lines elsewhere.
const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const SPIN_MS = 100;
const PLAIN_EVERY_MS = 20_000;

/**
 * Runs a step and shows it. `work` gets `say`, which shows a detail while it runs, and returns
 * what was done ("installed", "up to date").
 * @param {string} name
 * @param {(say: (detail: string) => void) => Promise<string>} work
 */
export async function step(name, work) {
  const begun = performance.now();
  const tty = process.stdout.isTTY;
  let detail = "";
  let frame = 0;
  const seconds = () => ((performance.now() - begun) / 1000).toFixed(1);
  const draw = () => {
    const width = Math.max(20, (process.stdout.columns ?? 80) - 1);
    const line = `${FRAMES[frame++ % FRAMES.length]} ${name} ${seconds()} s  ${detail}`;
    process.stdout.write(`\r\u001b[2K${line.slice(0, width)}`);
  };
  const plain = () => console.log(`  ${name}: still at it after ${seconds()} s  ${detail}`);
  const timer = setInterval(tty ? draw : plain, tty ? SPIN_MS : PLAIN_EVERY_MS);
  let announced = false;
  const say = (text) => {
    detail = text;
    // Plain output says once that a step takes its time; a step that is skipped prints one line.
    if (!tty && !announced) console.log(`  ${name}: ${text}`);
    announced = true;
  };
  let mark = "✗";
  let outcome = "failed";
  try {
    outcome = await work(say);
    mark = "✓";
  } finally {
    clearInterval(timer);
    process.stdout.write(
      `${tty ? "\r\u001b[2K" : ""}${mark} ${name}: ${outcome} (${seconds()} s)\n`,
    );
  }
}
