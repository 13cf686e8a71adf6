/** The Sink seam. */
export interface Sink {
  readonly kind: string;
}
