/** What was sent does not fit what the receiver takes: syntax, schema, size. */
import { signatures } from "../signature.ts";

export const PAYLOAD = signatures(String.raw`
too_large bad_payload 0.965 it is larger than the receiver takes
  codes: PAYLOAD_TOO_LARGE ENTITY_TOO_LARGE EMSGSIZE MESSAGE_TOO_LARGE RECORD_TOO_LARGE REQUEST_TOO_LARGE
  (payload|entity|message|body|request|record|content|file|attachment|packet|document|header|headers|item|event|batch|image|string|uri|url|row|frame|data|object) (\w+ ){0,3}(too|is too|are too|was too) (large|big|long)
  (larger|greater|bigger|longer) than (the )?(max\w*|allowed|limit|permitted|\d+|supported)|too ?large
  (size|length|bytes|payload|message|body|file|content) … (exceeds?|exceeded|exceeding|over|above|greater than) … (max\w*|limit|allowed|size|fixed|\d+)
  (exceeds?|exceeded) … (max\w* (allowed )?(size|length|payload|message|request|item|document|packet|body)|size limit|maximum size|message size|size|length limit)
  max allowed packet|item size|message size|context (length|window)|maximum context|prompt is too long
other_type bad_payload 0.96 a field has another type there
  (type|schema|mapping) conflict|type mismatch|mismatched (input|type)s?|incompatible (types?|schema)
syntax bad_payload 0.94 the receiver cannot read what was sent
  codes: INVALID_JSON MALFORMED_REQUEST MALFORMED_JSON PARSE_ERROR INVALID_ARGUMENT MAPPER_PARSING_EXCEPTION SERIALIZATION_EXCEPTION JSON_PARSE_ERROR
  (json|xml|yaml|csv|avro|proto|protobuf|soap|html|graphql|edi|hl7|msgpack|multipart|form data) … (parse|parsing|pars\w+|error|invalid|decode|decoding|deseriali\w+|malformed|syntax|exception|well formed|format)
  (invalid|malformed|bad|illegal|unparsable|unparseable|not (a )?valid|not well formed) … (json|xml|yaml|csv|avro|proto\w*|utf ?8|base64|multipart|soap)
  (failed|unable|can ?not|cant|could ?n[o]?t|error|problem|fail|exception|not) (to |while |when |be )?(pars|decod|deseriali|unmarshal|decrypt|interpret|unpack|decompress|read json|read the request body|process the json|cast)\w*
  pars(e|er|ing) (error|exception|failed|failure)|error (pars|decod|deseriali|unmarshal)\w+
  unexpected (token|character|end of (json|input|data)|field|symbol|identifier|element|byte|indent)|unterminated
  was expecting|expecting value|seriali[sz]ation exception|wire format|magic byte|not readable
  message not readable|well formed|syntax error|unrecogni[sz]ed (field|property|token)
  unknown (field|property|attribute|parameter|argument)|extra (inputs|fields|data)
  premature end of (document|file)|poison|corrupt(ed)? (message|record|data|payload|file)
  checksum (mismatch|error|failed)|crc|unsupported media|content type|media type|charset
  encoding (error|not supported)|invalid utf
schema_of_message bad_payload 0.92 fields are missing or do not fit
  codes: VALIDATION_ERROR VALIDATION_FAILED REQUIRED_FIELD_MISSING MISSING_REQUIRED_FIELD INVALID_PARAMETER INVALID_FIELD FIELD_REQUIRED PARAMETER_MISSING PARAMETER_INVALID INVALID_INPUT INVALID_PARAMETER_VALUE FIELD_CUSTOM_VALIDATION_EXCEPTION
  (can ?not|cant|must not|may not|should not) (contain|include|have|exceed|start|end|use)
  validation (failed|failure|error|errors|exception|problem)s?|(failed|not pass|fails|invalid) … validation
  (is|are) (a )?required( field| property| parameter| when| for| if| in| and| but| by)|(is|are) required$
  (required|missing|mandatory) (\w+ ){0,3}(field|parameter|property|attribute|argument|value|header|param|key|element|member|column|variable|properties|data|input|information|inputs)s?
  (field|value|property|parameter|argument|attribute|key)s? (\w+ ){0,2}(required|missing|is missing|cannot be (empty|null|blank)|must not be)
  (can ?not|cant|must not|should not|may not|not) be (blank|empty|null|negative|zero|none|undefined|in the (past|future)|longer|greater|less|more|set|omitted)
  must (be|have|contain|match|start|not|provide|specify|include|consist|supply|equal|conform)
  should (be|have|match|contain)|(does ?n[o]?t|not|did not|do not) (match|conform|satisfy|comply|meet|contain)
  not (a )?valid|is not (a|an|one of) |not an allowed|expected … (got|but|received|found|to be)
  (got|received) … (expected|instead)|schema (validation|violation|mismatch|error|registry)|incompatible schema
  type mismatch|value error|type error \w+ not|unprocessable|invalid content was found|cvc \w+
  (outside|out) (of )?(the )?(range|allowed|permitted)|at (least|most) \d+|between \d+ and
  (min|max)imum (length|value|of|is)|(less|greater|lower|higher|more|fewer) than (or equal|\d+|the (min|max))
  cannot be set|too (long|short|small|big|few|many)
invalid bad_payload 0.8 a part of it is not as the receiver wants it
  (invalid|malformed|illegal|unrecogni[sz]ed|unsupported|incorrect|unexpected|bad|wrong|unacceptable) (?:\w+ ){0,2}(field|param\w*|property|value|header|body|payload|input|format|request|content|data|type|character|date|\w*time|email|address|phone|number|amount|currency|country|message|enum|encoding|id|name|file|query|code|variable|document|record|object|string|argument|attribute|option|syntax|reference|identifier)s?
  (field|param\w*|property|value|header|body|payload|input|format|data|type|date|email|address|phone|number|amount|currency|country|code|variable|argument|attribute|option|url|name|id|key|image|line item|sku|quantity)s? (?:\w+ ){0,3}(invalid|not valid|incorrect|malformed|not supported|unsupported|not allowed|not recogni[sz]ed|wrong|must|required|missing|unknown)
bad_request_word bad_payload 0.58 the receiver refuses the request as it is
  codes: BAD_REQUEST INVALID_REQUEST INVALID_REQUEST_ERROR VALIDATION_EXCEPTION
  mismatch(es|ed)?|bad request|invalid \w+|malformed|invalid|illegal|unacceptable|not acceptable|unsupported
  not supported|not valid|decrypt
`);
