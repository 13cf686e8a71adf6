/** The way to the receiver and whether it answers: sockets, names, time, outages. errno, curl, gRPC and proxies agree in these words. */
import { signatures } from "../signature.ts";

export const NETWORK = signatures(String.raw`
errno_network network 0.98 the receiver was not reached, or the connection broke
  codes: ENOTFOUND EAI_AGAIN EAI_NODATA ECONNREFUSED EHOSTUNREACH ENETUNREACH EHOSTDOWN ENETDOWN ECONNRESET ECONNABORTED EPIPE UND_ERR_SOCKET ERR_HTTP2_STREAM_ERROR ERR_STREAM_PREMATURE_CLOSE WSAECONNRESET
  ^fetch failed|error fetch failed
  failed to fetch|cut short|could not be sent
errno_late timeout 0.985 no answer came in time
  codes: ETIMEDOUT ESOCKETTIMEDOUT UND_ERR_CONNECT_TIMEOUT UND_ERR_HEADERS_TIMEOUT UND_ERR_BODY_TIMEOUT DEADLINE_EXCEEDED WSAETIMEDOUT
dns network 0.94 the name of the host was not resolved
  enotfound|eai again|getaddrinfo|name resolution|name or service not known
  (no such|unknown|resolve|resolving) host|unknown host\w*|server misbehaving|nodename nor servname
  dns (lookup|resolution|error|failure|server|query|name)|nxdomain|servfail|translate host name
  host ?name … resolved|no address associated|name not resolved|resolve … (address|hostname|name)
unreachable network 0.92 nothing at that address was reached
  connection (\w+ )?refused|econnrefused|actively refused|no connection could be made|no route to host
  (host|network) (is )?(unreachable|down)|e(host|net)unreach|unreachable (network|host|address|server)
  (could ?n[o]?t|can ?not|cant|failed to|unable to|error|did not|while) (open a connection|establish … connection|connect\w*|reach)
  connect(ion)? (error|failed|failure|exception)|no listener|no brokers? … available
  (bootstrap )?brokers? … (disconnected|down|not available)
  all … (hosts|nodes|brokers|connections) … (failed|tried|unreachable|dead|down)|server selection
  no (alive|living|reachable) \w+|network related|tunnel … failed|proxy (error|connect)
broken network 0.9 the connection broke before an answer came
  (http ?2|h2|protocol|framing|stream) error
  connection (\w+ ){0,2}(reset|aborted|closed|terminated|lost|dropped|broken|interrupted|shut ?down|ended|disconnected|forcibly)
  reset by peer|econnreset|econnaborted|epipe|broken pipe
  socket (hang ?up|closed|error|disconnected|exception|is closed)|hang ?up|other side closed
  premature(ly)? (close|closed|end|eof)|(remote|peer|server) (end |side )?(closed|disconnected|hung up|reset)\w*
  forcibly closed|unexpected (eof|end of (file|stream))|eof (occurred|exception|error)|goaway
  stream (was |is )?(reset|closed|removed)|rst stream|empty reply|incomplete (read|chunked|message|response)
  i ?o (error|exception)|transport (is )?(closing|closed|error|failure)|disconnect reset before headers
  no response (was )?(received|from)|network (error|problem|issue|failure|connection|exception)
  channel (is )?(closed|shut ?down)|error (sending|reading|writing) … (request|response|body|socket)
  response ended|(request|response|connection|stream|transfer|call|operation) (was )?interrupted
  communication (failed|failure|error|problem|link)|bad (file descriptor|record mac)|stream ended
late timeout 0.92 no answer came in time
  (request|read|write|connect|connection|socket|gateway|response|upstream|operation|client|server|session|handshake|consistency|replica|poll|idle|http ?client|header|headers|body|call|rpc) … (time ?out|time ?outs|timed ?out)
  (time ?out|time ?outs|timed ?out) … (exceeded|expired|elapsed|reached|after|waiting|while|during|of|error|exception|awaiting)
  (http ?client|read|write|connect|socket) time ?out|etimedout|timed ?out|deadline (was )?exceeded|no (answer|response|reply) (came|within|in|after) \w+|before (its|the) deadline|took too long
  taking too (long|much)|did ?n[o]?t (respond|reply|answer|complete|finish)( \w+){0,3}|exceeded … (time ?out|deadline)
  time limit exceeded|context deadline|request aborted due to time|function … timed|no heartbeat
late_word timeout 0.72 no answer came in time
  time ?out|time ?outs|gateway time ?out
down outage 0.91 the receiver as a whole is down
  (process|worker|container|instance|agent|server) … (terminated|exited|died|killed|crashed)( unexpectedly)?
  no (\w+ )?(process(es)?|instances?|workers?|consumers?|responders?|listeners?|subscribers?) (is |are |was |were )?(running|available|alive|connected|listening|responding|online)
  no (healthy|available|live|active|running|ready) (\w+ )?(upstream|host|backend|server|node|instance|target|worker|endpoint|peer|replica|connection|member)s?
  no (server|upstream|backend|node|instance|worker|host|target)s? (is|are|was|were|could be)? ?(available|found|online|reachable|ready)
  (web |origin |upstream |backend |api |app |database )?(server|host|origin|backend|site|system|platform|gateway|service|application|app|api) (is|are|was|seems|appears) (\w+ )?(down|offline|dead|unhealthy|stopped|not running|unreachable)
  (app|application|dyno|container|pod|process|instance|worker|function|machine|service|server) (has |was |is )?(\w+ )?(crashed|crashing|exited|died|crash|stopped|not running|suspended)
  backend fetch failed|crash ?loop\w*|maintenance
  (all|every) (backend|upstream|server|node|host|shard)s? … (down|failed|unavailable|offline)
  circuit ?breaker … open|circuit (is )?open|shards? (failed|unavailable)|search phase execution|major outage
  outage|disaster
back_soon outage.passing 0.93 the receiver says that it will be back in a moment
  4\d\d 4 \d \d|grey ?list(ed|ing)?
  try again in \d+
  brief(ly)? (unavailable|interrupt\w+|outage|maintenance)
  (back|again) (in|within) a (few )?(second|minute|moment)s?
  (try|check) (again|back) (in|within) (a |\d+ )(few )?(second|minute|moment)s?|momentarily
  (is|currently) (waking|deploying|scaling)|being deployed|cold start
unavailable outage 0.75 the receiver does not serve now
  codes: UNAVAILABLE SERVICE_UNAVAILABLE SERVER_UNAVAILABLE BACKEND_ERROR UPSTREAM_ERROR
  (invalid|bad|malformed) (\w+ )?response|upstream server
  (service|server|system|site|resource|host|backend|upstream|gateway|provider|processor|issuer|api|database|node|instance|application|it) (is |was )?(\w+ ){0,2}(unavailable|not available|inaccessible|unreachable)
  is (currently |temporarily )?unavailable|not available (right now|at (this|the) (time|moment))
  unavailable service|backend error|upstream (error|failure|connect error|request failed)|bad gateway
again_later outage.passing 0.68 the receiver asks to try again later
  (try|attempt|send|submit|retry) … (again|later|shortly)( later| shortly| soon| in| after)
  (please )?(retry|try again) (later|shortly|soon|after|your request|the request|this request|with (exponential )?back ?off)
  retry ?able|temporar(y|ily)|transient|intermittent\w*|internal (processing )?error please
internal outage.passing 0.6 the receiver failed inside and says no more
  codes: INTERNAL_ERROR INTERNAL_SERVER_ERROR INTERNAL SERVER_ERROR API_ERROR INTERNAL_FAILURE
  internal (server |service |api |system |processing )?(error|failure|exception|fault)|server (side )?error
  something went wrong|(unexpected|unknown|general|generic|unspecified) (\w+ )?(error|exception|failure|problem)
  oops|whoops|error (has )?occurred
  (unable to|can ?not|cant|could ?n[o]?t|failed to) (process|complete|handle|fulfil) (the|your|this|that) \w+
  went wrong|processing error|system error
`);
