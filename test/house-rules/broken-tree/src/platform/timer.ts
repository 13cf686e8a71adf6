/** The one door. */
export interface Timer {
  cancel(): void;
}
export const system = () => setTimeout(() => Date.now() + Math.random(), 1);
