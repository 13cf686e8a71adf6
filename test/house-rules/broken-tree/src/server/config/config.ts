/** May read the environment, but nothing else. */
export const port = process.env.MAKEGOOD_PORT;
console.log(port);
