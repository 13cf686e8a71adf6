/** Our dashboard, in the order of the questions on call: is anything lost, does it get on, what is dead, what heals, and what it all stands on. */
import { type Described, labelVariable } from "./dashboard.ts";
import { audit, conservation, expiry, jobs, settlement, stores } from "./makegood-ground.ts";
import { deadLetters, delivery, recovery } from "./makegood-messages.ts";

const TOPICS = "label_values(makegood_topic_paused, topic)";

export const makegood: Described = {
  uid: "makegood",
  title: "Makegood",
  description: "Accepted means durable, delivery is at least once: whether that holds, and what to do where it does not.",
  alerts: "Makegood.+|Audit.+|M10.+",
  variables: [
    labelVariable("namespace", "Namespace", TOPICS, "[^/]+", "/^([^/]+)\\//"),
    labelVariable("topic", "Topic", 'label_values(makegood_topic_paused{topic=~"($namespace)/.+"}, topic)', ".+"),
    labelVariable("job_name", "Maintenance job", "label_values(makegood_job_runs_total, job_name)", ".+"),
  ],
  rows: [conservation, delivery, deadLetters, recovery, stores, settlement, jobs, audit, expiry],
};
