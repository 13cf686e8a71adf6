/**
 * What people say about the store over HTTP: that they know what it lost, so that health stops saying it.
 */
import { BODY_BYTES, readText } from "../body.ts";
import { type FieldFault, readFields } from "../contract/fields.ts";
import { checkJson } from "../contract/payload-scanner.ts";
import { type Handler, json } from "../http.ts";
import type { Kernel } from "../kernel.ts";
import { reasonOf, refusedFor } from "./interventions.ts";

export function acknowledgeLossHandler(kernel: Kernel): Handler {
  return async (request) => {
    const text = await readText(request, BODY_BYTES.intervention);
    if (!text.ok) return text.reply;
    checkJson(text.value, "invalid_message");
    const faults: FieldFault[] = [];
    const fields = readFields(JSON.parse(text.value), "", faults);
    const reason = reasonOf(fields);
    fields?.refuseUnknown();
    if (faults.length > 0 || reason === undefined) {
      const wrong = refusedFor(faults);
      if (!wrong.ok) return wrong.reply;
    }
    await kernel.mg.watch.acknowledge(request.actor, reason ?? "");
    return json(200, { acknowledged: true });
  };
}
