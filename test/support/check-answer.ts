/**
 * Holds an answer of the API against its route: the status is one of those that the route names, the body fits its schema with no field
 * beside it, and a refusal is a problem whose code the route (or every route) may answer with.
 */
import { ADDRESSES, type RouteId } from "../../src/contract/addresses.ts";
import { CONDITION_FAILED } from "../../src/contract/openapi.ts";
import { errorsOf, type ProblemCode, problemShape, type Route, statusOf } from "../../src/contract/route.ts";
import { ROUTES, routeIds } from "../../src/contract/table.ts";

export function routeOf(method: string, path: string): RouteId | null {
  const fits = (template: string) => new RegExp(`^${template.replace(/\{\w+\}/g, "[^/]+")}$`).test(path);
  return routeIds.find((id) => ADDRESSES[id][0] === method && fits(ADDRESSES[id][1])) ?? null;
}

/** Throws what does not fit. */
export async function checkAnswer(method: string, url: string, response: Response): Promise<void> {
  const { pathname } = new URL(url);
  const id = routeOf(method, pathname);
  const text = await response.clone().text();
  const where = `${method} ${pathname} answered ${response.status}`;
  if (response.status >= 400) return checkProblem(id, where, response, text);
  if (id === null) throw new Error(`${where}, and no route has this address`);
  const route: Route = ROUTES[id];
  if (!(response.status in route.answers)) throw new Error(`${where}, which ${id} does not name`);
  const answer = route.answers[response.status];
  if (answer === null || answer === undefined) {
    if (text !== "") throw new Error(`${where} with a body, and ${id} has none`);
  } else if ("_zod" in answer) {
    const checked = answer.safeParse(JSON.parse(text));
    if (!checked.success)
      throw new Error(`${where}: ${id}: ${JSON.stringify(checked.error.issues.slice(0, 3))}\n${text.slice(0, 500)}`);
  } else if (!response.headers.get("content-type")?.startsWith(answer.type)) {
    throw new Error(`${where} as ${response.headers.get("content-type")}, and ${id} says ${answer.type}`);
  }
}

function checkProblem(id: RouteId | null, where: string, response: Response, text: string): void {
  // An unhealthy server says how it stands.
  if (id === "health" && response.status === 503) return;
  if (response.headers.get("content-type") !== "application/problem+json") throw new Error(`${where} without a problem: ${text}`);
  const { code, status } = problemShape.parse(JSON.parse(text));
  if (status !== response.status) throw new Error(`${where} with a problem of status ${status}`);
  const route: Route | null = id && ROUTES[id];
  if (!route || code === "method_not_allowed") return;
  if (!errorsOf(route).has(code as ProblemCode)) throw new Error(`${where}: ${id} does not name ${code}`);
  if (status !== statusOf(code as ProblemCode) && !(code === "version_conflict" && status === CONDITION_FAILED))
    throw new Error(`${where}: ${code} is ${statusOf(code as ProblemCode)} in the document`);
}
