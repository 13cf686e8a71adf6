/** Is given the environment; it may neither read it nor print. */
export const port = process.env.MAKEGOOD_PORT;
console.log(port);
