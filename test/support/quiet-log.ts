/**
 * The default log of the library writes to standard error; what our own tests provoke would stand between their results. Its lines are left
 * out here, once for all of them; what it writes is tested in processes of its own (test/delivery/default-log.test.ts).
 */
const LINE = /^\d{4}-\d\d-\d\dT[\d:.]+Z (?:warn |error) .*\n$/;
const QUIET = Symbol.for("makegood.quiet-log");

type Write = typeof process.stderr.write & { [QUIET]?: true };

const write = process.stderr.write as Write;
if (write[QUIET] !== true) {
  const through = write.bind(process.stderr) as (...args: unknown[]) => boolean;
  const quiet = ((text: unknown, ...rest: unknown[]) =>
    typeof text === "string" && LINE.test(text) ? true : through(text, ...rest)) as Write;
  quiet[QUIET] = true;
  process.stderr.write = quiet;
}
