/** Reads the body of a request by itself, past its route. */
export const parsed = (text: string): unknown => JSON.parse(text);
export const asJson = (request: Request): Promise<unknown> => request.json();
export const asBytes = (request: Request): Promise<ArrayBuffer> => request.arrayBuffer();
export const shown = (value: unknown): string => JSON.stringify(value);
