/** The quoted name, or a refusal that says what is allowed. */
export declare function quoteSchema(name: string): string;
