/** A seam with one member too many. */
export interface Store {
  readonly m1: { readonly inner: string; readonly other: number };
  m2(a: string, b: { c: number; d: number }): Promise<void>;
  m3(): void;
  m4(): void;
  m5(): void;
  m6(): void;
  m7(): void;
  m8(): void;
  m9(): void;
  m10(): void;
  m11(): void;
  m12(): void;
  m13(): void;
  m14(): void;
  m15(): void;
  m16(): void;
  m17(): void;
  m18(): void;
  m19(): void;
  m20(): void;
  m21(): void;
}

export const seam = true;
