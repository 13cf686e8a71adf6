/** Mistakes in programs, by the names that languages and runtimes give them. */
import { signatures } from "../signature.ts";

export const PROGRAM = signatures(String.raw`
header bug_in_sender 0.95 the request could not even be built
  codes: ERR_INVALID_CHAR ERR_INVALID_URL ERR_HTTP_INVALID_HEADER_VALUE ERR_UNESCAPED_CHARACTERS ERR_INVALID_ARG_TYPE
  invalid … (header (content|value|name|field)|url|uri|header)|header … (invalid|illegal|malformed)
  illegal character in|unescaped characters|relative url|missing protocol scheme|unsupported (protocol|uri|scheme)
  (uri|url) … (invalid|malformed)|malformed (uri|url)|wrong ?type operation|wrong number of arguments
  unknown command|bad request line|only absolute urls
null bug_in_receiver 0.94 the program used something that was not there
  null ?pointer|null ?reference|nil pointer|nil class|none ?type|of (null|undefined)
  (on|for|is|to|was|of|got|but) (a )?(null|nil)|(is |was )?null$|object reference not set
  reading (property )?\w+$|undefined is not|(null|undefined) (is|value)|on a none value|unwrap\w*|expect failed
  nil value|null object|optional … (empty|no value)|no value present|accessing null|dereferenc\w+
mistake bug_in_receiver 0.93 the program made a mistake that no other try will mend
  (is not|isnt) (a function|defined|iterable|callable|a constructor|subscriptable|an object|initiali[sz]ed)
  undefined (method|variable|index|offset|array key|property|local variable|constant|name|behaviou?r)
  can ?not (read|set|access|convert|destructure|call|invoke|assign|cast|instantiate|redeclare|unpack|deserialize instance|mix)
  has no (attribute|member|method|property)
  no (attribute|method|such method|such property|such element|such field|function clause)
  (attribute|key|name|type|index|reference|no method|assertion|unbound local|zero division|lookup|argument|range|recursion|stop iteration|indentation|frozen|fiber|arithmetic|unboundlocal) (error|exception)$
  raised (attribute|key|name|type|index|reference|no method|assertion|zero division|lookup|argument|range|recursion|illegal state|illegal argument|invalid operation|class cast|array index out of bounds|index out of (range|bounds)|concurrent modification|unsupported operation|argument null|invalid cast|key not found|no such element|null pointer|format|number format) (error|exception)
  index … out of|out of bounds|(array|slice|string) index|class ?cast|invalid cast|can ?not be cast|illegal state
  panic\w*|segmentation fault|segfault|sigsegv|core dumped|assert(ion)? (failed|failure)
  (division|divide|divided) by (zero|0)|stack ?overflow|stack level too deep|maximum call stack|recursion
  call to (a member|undefined|unknown)|unsupported operand|invariant|not callable
  infinite loop|sequence contains no|key not found|given key was not present|collection was modified|bad ?match
  case clause|function clause|wrong number of arguments|missing \d+ required positional|takes \d+ positional
  too few arguments|unexpected keyword|must be of type \w+ (null|string|int|array)|argument \d+ … must be
  headers already sent|lazy initiali[sz]\w*|circular (reference|structure|dependency)|object is not
  not serializable|incompatible types|use of (undefined|uninitiali[sz]ed|closed)|freed|double free
release bug_in_receiver.release 0.95 a part of the program is missing: the release is not whole
  no … bean|no such bean \w+
  no module named|(find|load|resolve|import) … (module|class|package|symbol|library|assembly|bundle)
  module not found|import error|no class def|class … not found|class ?not ?found|classnotfound
  (class|method|function|assembly|library|gem|package|autoload\w*) … (could not be (found|loaded)|missing)
  no such method error|undefined symbol
  (template|partial|view|layout|asset) … (does not exist|missing|not found)
  template (does not exist|missing|not found)|bean … (create|creation|not)|unsatisfied dependency
  no suitable (driver|constructor)|shared object|abi|dependency … (missing|not (found|resolved|satisfied))
  target class
raised bug_in_receiver 0.56 the program raised an exception
  unhandled|uncaught|fatal error
  ^raised \w+.*|traceback|stack ?trace|caused by|nested exception|exception|in … line \d+|on line \d+
`);
