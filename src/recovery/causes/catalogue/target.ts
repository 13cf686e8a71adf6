/** What it was meant for is not there: gone for good, not known, or never set up. */
import { signatures } from "../signature.ts";

const THINGS_SET_UP = [
  "bucket|queue|topic|exchange|index|container|stream|route|endpoint|webhook|hook|namespace|deployment|function|method|path|url",
  "uri|page|service|project|workspace|vhost|application|app|tenant|partition|repository|file|directory|folder|template",
  "channel|secret|cluster|collection|zone|domain|handler|lambda|instance|operation|environment|connector|integration",
].join("|");

export const TARGET = signatures(String.raw`
record_of_model missing_target 0.97 the record it refers to is not there
  no query results|matching query does not exist|record not found|could ?n[o]?t find … with|no row (was )?found
  no rows in result
model missing_target.model 0.96 the model that was asked for is not offered, or not any more
  codes: MODEL_NOT_FOUND MODEL_DECOMMISSIONED MODEL_NOT_AVAILABLE DEPLOYMENT_NOT_FOUND
  models? … (not found|does ?n[o]?t exist|decommissioned|deprecated|not supported|no longer|retired|unknown|not available|discontinued|is ?n[o]?t available|unavailable|end of life|not exist)
  (unknown|invalid|unsupported|no such|find) … model|model identifier is invalid|on demand throughput … supported
gone missing_target.gone 0.95 it is gone for good: there is nothing to deliver to
  codes: GONE UNREGISTERED NOT_REGISTERED ENTITY_IS_DELETED DEVICE_NOT_REGISTERED BAD_DEVICE_TOKEN
  (device|token|recipient|subscriber|number|user|app) … (unregistered|not registered)|registration token
  device token|410 gone
  (is|was|has been|have been|been|were) (permanently |already |soft )?(deleted|removed|purged|unpublished|erased)
  (deleted|removed|closed) (user|account|customer|entity|record|object|contact|resource|item)
  no longer (exists?|valid|registered|available|subscribed|member|in use|present|employed)
  (subscription|registration) … (unsubscribed|expired|gone|not exist)|endpoint is disabled|entity is deleted
  in the trash
set_up missing_target.set_up 0.93 the place it goes to was not set up, or its name is wrong
  codes: NO_SUCH_BUCKET UNKNOWN_TOPIC_OR_PARTITION INDEX_NOT_FOUND_EXCEPTION ENOENT QUEUE_DOES_NOT_EXIST NON_EXISTENT_QUEUE RESOURCE_NOT_FOUND_EXCEPTION
  (${THINGS_SET_UP}) … (not found|does ?n[o]?t exist|not exist|is missing|unknown|(could ?n[o]?t|can ?not|cant) be found|is ?n[o]?t found|not available)
  (unknown|no such|non ?existent|nonexistent|no matching|undefined) (\w+ )?(${THINGS_SET_UP})
  (find|locate|resolve|load|open) (\w+ ){0,2}(${THINGS_SET_UP})
  no (${THINGS_SET_UP})\w*( \w+)? (\w+ )?(found|matched|defined|in|with|for|exists|named|configured|bound|registered)
  can ?not (post|get|put|patch|delete) |no route matched|does not host this|index not found|no mapping|no service$
  not hosted|(html|doctype|title|h1|nginx|apache|iis) … (404|not found|page not found)
  page … (looking for|not be found|doesnt exist)|the requested url|there is nothing here|no handler found
  no static resource
recipient missing_target 0.9 what it is about is not known there
  codes: RESOURCE_MISSING NOT_FOUND RESOURCE_NOT_FOUND OBJECT_NOT_FOUND NO_SUCH_KEY
  (no such|unknown|non ?existent|invalid|missing|cant find|cannot find|find) (\w+ )?(user|customer|recipient|contact|account|chat|member|person|employee|order|invoice|payment|charge|record|object|entity|item|product|document|subscription|message|ticket|issue|lead|mailbox|address|key|token|id|resource|device|subscriber|transaction|card|list|group|row|conversation)
  (user|customer|recipient|contact|account|chat|member|person|employee|order|invoice|payment|charge|record|object|entity|item|product|document|subscription|message|ticket|issue|lead|mailbox|email|address|key|resource|device|subscriber|transaction|parent|reference|sku|id|list|group|conversation|domain) … (not found|does ?n[o]?t exist|not exist|not exists|unknown|(could ?n[o]?t|can ?not|cant) be found|is ?n[o]?t found|was ?n[o]?t found|not known|missing|invalid id)
  55\d 5 1 [0-9]|user unknown|unknown user|recipient (address )?rejected|mailbox unavailable|no mailbox
  undeliverable|address … not exist|delivery … failed permanently|no such object|nosuch\w+
not_found_word missing_target 0.64 something it needs was not found
  not found|does ?n[o]?t exist|do(es)? not exist|no such|not exist
  (could ?n[o]?t|can ?not|cant|unable to) (be )?f(i|ou)nd|non ?existent|no \w+ (was |were )?found|unknown \w+
  missing
`);
