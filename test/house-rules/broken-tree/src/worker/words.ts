/** Another vocabulary. */
export const jobId = 1;
export const TASK_LIST = [jobId];
export function queuePriority(ackToken: string): string {
  return ackToken;
}
export const nack = { sizeOfDLQ: 1 };
queueMicrotask(() => undefined);
