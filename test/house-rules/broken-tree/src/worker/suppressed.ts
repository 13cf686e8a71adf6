/** Suppressions, with and without a reason. */
// @ts-expect-error
export const a: number = "a";
// @ts-expect-error the library's own type is wrong, reported upstream
export const b: number = "b";
// biome-ignore lint/suspicious/noExplicitAny: <explanation>
export const c: any = 1;
// biome-ignore lint/suspicious/noExplicitAny: the driver's row has no type
export const d: any = 1;
/* @ts-ignore */ export const e: number = "e";
