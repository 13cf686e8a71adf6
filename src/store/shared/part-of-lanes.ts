/**
 * A part of the lanes for stores that have all of them at hand: in the order of their names, from after a given one on.
 */
import type { Lane, Lanes } from "../store.ts";

export function partOf(lanes: Lane[], { after, limit }: Lanes = {}): Lane[] {
  if (after === undefined && (limit === undefined || lanes.length < limit)) return lanes;
  const rest = after === undefined ? lanes : lanes.filter(({ lane }) => lane > after);
  return rest.sort((a, b) => (a.lane < b.lane ? -1 : 1)).slice(0, limit);
}
