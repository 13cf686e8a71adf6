/** A default export, twice. */
const main = 1;
export default main;
export { main as default };
