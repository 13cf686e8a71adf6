/**
 * Payload texts and keys that drivers and query builders like to change: each must be delivered byte for byte.
 */

export const PAYLOADS: Readonly<Record<string, string>> = {
  "an escaped NUL": '{"nul":"a\\u0000b"}',
  "half a surrogate pair, escaped": '{"lone":"\\ud800","other":"\\udfff"}',
  "integers beyond 2^53": '{"n":9007199254740993,"m":-123456789012345678901234567890}',
  "a number beyond every double": '{"n":1e400,"m":1.0,"z":-0}',
  "the same name twice": '{"a":1,"a":2}',
  "names of prototypes": '{"__proto__":{"x":1},"constructor":0}',
  "question marks": '{"q":"? ?? ??? \\\\? ?| ?& @? \\\\\\\\? why?"}',
  "parameters of every style": '{"p":"$1 $2::text $10 :name ::int %s %L {0} @p1 #{x} $y ~1~"}',
  "quotes and comments": "{\"q\":\"it's '' \\\" \\\\' E'\\\\n' $$ $body$ -- ; /* */ `x` [y]\"}",
  backslashes: '{"b":"\\\\ \\n \\\\n \\t \\u00e9 \\/ c:\\\\temp"}',
  "space and line ends between tokens": ' {\n\t"a" :\r\n[ 1 , 2 ] } ',
  "letters of all planes": '{"é":"ß – “ ” 日本 \u2028 \u2029 💶 👩‍👩‍👧 \ufeff \ufffd \u00a0"}',
  "the separators' escapes": '{"s":"\\u001e \\u001f , \\u007f \u007f"}',
  "a date": '"2026-01-31T23:59:59.999Z"',
  "an array literal of PostgreSQL": '"{1,2,NULL}"',
  "nothing but null": "null",
  "an empty text": '""',
  "an empty array": "[]",
  "a number": "0.10",
  "200 kB": JSON.stringify("?'\\$1é".repeat(25_000)),
};

export const KEYS: readonly string[] = [
  "plain",
  "schlüssel-日本-💶",
  "? ?? $1 :name",
  'it\'s \\ "quoted" -- ;',
  "{a,b}",
  "a,b, ,c",
  "NULL",
  "%s\u00a0",
];
