/** Templates: our error families come out as groups, whatever the order; groups only join; a full scope stays bounded; processes agree. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  LEARNER_LIMITS,
  type LearnerState,
  OVERFLOW,
  type Template,
  TemplateLearner,
} from "../../../src/recovery/fingerprint/learner.ts";
import { mask } from "../../../src/recovery/fingerprint/mask.ts";
import { syncTemplates, type TemplateStore } from "../../../src/recovery/fingerprint/template-store.ts";
import { tokenise } from "../../../src/recovery/fingerprint/tokens.ts";
import { MEANINGFUL, ONE_GROUP, sample } from "./fingerprint-fixtures.ts";
import { createMemoryTemplateStore } from "./memory-template-store.ts";

/** The group of each text when all were seen. */
function groupsOf(texts: readonly string[], learner = new TemplateLearner("t")): string[] {
  const given = texts.map((text) => learner.learn(mask(text)).id);
  return given.map((id) => learner.resolve(id)?.id ?? "lost");
}

/** The groups as they are now. */
function templatesOf(learner: TemplateLearner): (Template | undefined)[] {
  const { groups } = learner.snapshot();
  return groups.map(({ id }) => learner.resolve(id)).sort((a, b) => ((a?.text ?? "") < (b?.text ?? "") ? -1 : 1));
}

function restored(state: LearnerState): TemplateLearner {
  const learner = new TemplateLearner("t");
  learner.absorb(state);
  return learner;
}

/** Lines of a made-up program: three sentences, each with words and names in places. */
const line = fc.oneof(
  fc
    .tuple(fc.constantFrom("read", "write", "sync"), fc.constantFrom("a", "b", "c", "d", "e", "f", "g", "h"))
    .map(([verb, word]) => `could not ${verb} the ${word} part of this record because it is too old`),
  fc
    .tuple(fc.constantFrom("ann", "bo", "7", "cy"), fc.constantFrom("eth0", "wlan1", "10.0.0.1", "lo"))
    .map(([user, from]) => `mailbox given to user ${user} from ${from} on port 5`),
  fc
    .tuple(fc.constantFrom("x", "y", "z", "w", "v"), fc.constantFrom("a.B", "c.D", "e.F", "g5", "plain"))
    .map(([state, name]) => `plugin changed mode=${state} while loading class ${name} in folder`),
  fc
    .tuple(
      fc.constantFrom("10.0.0.1", "printer", "DUP", "not", "big printer", "box 5", "eth0", "ann", "bo", "cy"),
      fc.constantFrom("bo", "cy", "7", "dan", "old dan", "eve", "fay", "gus", "hal", "ida", "jo", "expired", "a.B"),
    )
    .map(([lease, user]) => `lease of ${lease} was given back to user ${user} on the second try`),
);

describe("families", () => {
  const lines = sample(40);

  it("each of our error families is one group of its own", () => {
    const groups = groupsOf(lines.map(({ text }) => text));
    const labels = new Map<string, Set<string>>();
    lines.forEach(({ label }, i) => {
      labels.set(label, (labels.get(label) ?? new Set()).add(groups[i] as string));
    });
    expect([...labels].filter(([, set]) => set.size > 1).map(([label]) => label)).toEqual([]);
    expect(new Set(groups).size).toBe(labels.size);
  });

  it.each(MEANINGFUL.map((texts) => [texts] as const))("keeps apart %j", (texts) => {
    expect(new Set(groupsOf(texts)).size).toBe(texts.length);
  });

  it.each(ONE_GROUP.map((texts) => [texts] as const))("puts together %j", (texts) => {
    expect(new Set(groupsOf(texts)).size).toBe(1);
  });

  it("a place that is proven to vary takes in odd words, those that say what happened later, a negation never", () => {
    const text = (name: string) => `login of user ${name} was seen twice by the gate`;
    const count = (odd: string, names: readonly string[]) => new Set(groupsOf([odd, ...names].map(text))).size;
    const three = ["ann", "bo", "cy"];
    for (const [odd, after3, after5] of [
      ["billing", 1, 1],
      ["DUP", 2, 1],
      ["closed", 2, 1],
      ["not", 2, 2],
    ] as const) {
      expect([odd, count(odd, three), count(odd, [...three, "dan", "eve"])]).toEqual([odd, after3, after5]);
    }
  });

  it("ids, numbers and hosts never change the group", () => {
    const value = fc.oneof(
      fc.uuid(),
      fc.ipV4(),
      fc.integer().map(String),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    );
    fc.assert(
      fc.property(value, value, (a, b) => {
        const [one, other] = groupsOf([
          `charge ${a} failed on shard ${b} with code 5`,
          `charge ${b} failed on shard ${a} with code 7`,
        ]);
        expect(one).toBe(other);
      }),
      { numRuns: 300, seed: 5 },
    );
  });
});

describe("order", () => {
  it("the same lines in another order give the same groups, and every id given out on the way leads there", () => {
    fc.assert(
      fc.property(
        fc
          .array(line, { maxLength: 80 })
          .chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length }))),
        ([all, shuffled]) => {
          const [one, other] = [new TemplateLearner("t"), new TemplateLearner("t")];
          groupsOf(all, one);
          expect(groupsOf(shuffled, other)).not.toContain("lost");
          expect(templatesOf(other)).toEqual(templatesOf(one));
        },
      ),
      { numRuns: 200, seed: 5 },
    );
  });

  it("groups only join: two texts that were together stay together", () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 40 }), fc.array(line, { maxLength: 40 }), (first, more) => {
        const learner = new TemplateLearner("t");
        const before = groupsOf(first, learner);
        groupsOf(more, learner);
        const after = before.map((id) => learner.resolve(id)?.id);
        const became = new Map(before.map((id, i) => [id, after[i]]));
        expect(after).toEqual(groupsOf(first, learner));
        before.forEach((id, i) => {
          expect(after[i]).toBe(became.get(id));
        });
      }),
      { numRuns: 100, seed: 5 },
    );
  });

  it("a generalisation is recorded as merges that say what became what", () => {
    const learner = new TemplateLearner("t");
    const first = learner.learn("mailbox handed to user ann");
    expect(first.text).toBe("mailbox handed to user ann");
    expect(learner.learn("mailbox handed to user bo").text).toBe("mailbox handed to user <*>");
    const [merge] = learner.merges();
    expect(merge).toMatchObject({ from: first.id, why: '"mailbox handed to user ann" became "mailbox handed to user <*>"' });
    expect(learner.resolve(first.id)?.text).toBe("mailbox handed to user <*>");
    expect(learner.resolve("0000000000000000")).toBeUndefined();
  });
});

describe("limits", () => {
  it("a full scope learns nothing more: known templates still fit, the rest is the overflow group", () => {
    const learner = new TemplateLearner("t", 20);
    const letters = "abcdefghijklmnopqrstuvwxyz";
    const word = (n: number): string =>
      `w${letters[n % 26]}${letters[Math.floor(n / 26) % 26]}${letters[Math.floor(n / 676) % 26]}x`;
    const early = learner.learn(mask(`${word(0)} broke 5`));
    for (let n = 1; n < 5_000; n++) learner.learn(mask(`${word(n)} broke ${n}`));
    expect(learner.full).toBe(true);
    expect(learner.snapshot().rows).toHaveLength(20);
    expect(templatesOf(learner).length).toBe(21);
    expect(learner.learn(mask(`${word(0)} broke 77`)).id).toBe(early.id);
    expect(learner.learn("something else entirely").text).toBe(OVERFLOW);
    expect(learner.resolve(early.id)?.id).toBe(early.id);
  });

  it("long texts are cut, odd ones have a group", () => {
    const long = `start ${"word ".repeat(10_000)}`;
    expect(tokenise(mask(long)).length).toBe(64);
    const learner = new TemplateLearner("t");
    for (const text of ["", " ", "!!!", "<*>", "<", "12", "\u0000", "日本語 エラー 5", "\ud800", "x".repeat(1_048_576), long]) {
      const { id } = learner.learn(mask(text));
      expect(learner.resolve(id)?.id).toBe(id);
    }
    const again = restored(learner.snapshot());
    expect(templatesOf(again)).toEqual(templatesOf(learner));
  });

  it("a state that nobody made is refused, one of another version is left alone", () => {
    const state = new TemplateLearner("t").snapshot();
    const learner = new TemplateLearner("t");
    expect(() => learner.absorb({ ...state, rows: ["?what"] })).toThrow(/restore a state that snapshot\(\) made/);
    learner.absorb({ ...state, version: 0, rows: ["wold"] });
    expect(templatesOf(learner)).toEqual([]);
    // Merges that lead in a circle end.
    learner.absorb({
      ...state,
      merges: [
        { from: "a", to: "b", why: "" },
        { from: "b", to: "a", why: "" },
      ],
    });
    expect(learner.resolve("a")).toBeUndefined();
  });

  it("I10: of more merges than it keeps the oldest are forgotten", () => {
    const learner = new TemplateLearner("t");
    const { mergesMax } = LEARNER_LIMITS;
    const merges = Array.from({ length: mergesMax + 5 }, (_, n) => ({ from: `old-${n}`, to: "new", why: "" }));
    learner.absorb({ ...learner.snapshot(), merges });
    expect(learner.merges().map(({ from }) => from)).toEqual(merges.slice(5).map(({ from }) => from));
  });
});

describe("several processes", () => {
  it("a snapshot restores to the same groups and the same ids", () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 60 }), (all) => {
        const learner = new TemplateLearner("t");
        const ids = all.map((text) => learner.learn(mask(text)).id);
        const again = restored(JSON.parse(JSON.stringify(learner.snapshot())));
        expect(templatesOf(again)).toEqual(templatesOf(learner));
        for (const id of ids) expect(again.resolve(id)).toEqual(learner.resolve(id));
      }),
      { numRuns: 100, seed: 5 },
    );
  });

  it("two learners on one store come to the same groups, and ids of both resolve in both", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 60 }), fc.array(line, { maxLength: 60 }), async (mine, theirs) => {
        const store = createMemoryTemplateStore();
        let one = new TemplateLearner("t");
        let other = new TemplateLearner("t");
        const given: string[] = [];
        for (const text of mine) given.push(one.learn(mask(text)).id);
        for (const text of theirs) given.push(other.learn(mask(text)).id);
        one = await syncTemplates(store, one);
        other = await syncTemplates(store, other);
        one = await syncTemplates(store, one);
        expect(templatesOf(one)).toEqual(templatesOf(other));
        for (const id of given) {
          expect(one.resolve(id)).toBeDefined();
          expect(one.resolve(id)).toEqual(other.resolve(id));
        }
      }),
      { numRuns: 60, seed: 5 },
    );
  });

  it("saved after every text, by two in turns or by one alone, the store has the groups of all texts learned at once", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(line, fc.boolean()), { maxLength: 40 }), async (lines) => {
        const store = createMemoryTemplateStore();
        const both = [new TemplateLearner("t"), new TemplateLearner("t")];
        const given: string[] = [];
        for (const [text, second] of lines) {
          const i = second ? 1 : 0;
          given.push((both[i] as TemplateLearner).learn(mask(text)).id);
          both[i] = await syncTemplates(store, both[i] as TemplateLearner);
        }
        const atOnce = new TemplateLearner("t");
        for (const [text] of lines) atOnce.learn(mask(text));
        const fresh = await syncTemplates(store, new TemplateLearner("t"));
        expect(templatesOf(fresh)).toEqual(templatesOf(atOnce));
        for (const id of given) expect(fresh.resolve(id)).toBeDefined();
      }),
      { numRuns: 60, seed: 7 },
    );
  });

  it("who alone writes goes on with the same learner, saves once for each thing learned, and takes over what another wrote", async () => {
    const store = createMemoryTemplateStore();
    let one = await syncTemplates(store, new TemplateLearner("t"));
    const revision = async () => (await store.load("t")).revision;
    const before = await revision();
    one.learn("disk full on volume");
    expect(await syncTemplates(store, one)).toBe(one);
    expect(await syncTemplates(store, one)).toBe(one);
    expect(await revision()).toBe(before + 1);
    const other = await syncTemplates(store, new TemplateLearner("t"));
    other.learn("card was refused");
    await syncTemplates(store, other);
    one = await syncTemplates(store, one);
    expect(templatesOf(one).map((each) => each?.text)).toEqual(["card was refused", "disk full on volume"]);
  });

  it("at the limit the store's rows come first, and both still agree", async () => {
    const store = createMemoryTemplateStore();
    let one = new TemplateLearner("t", 3);
    let other = new TemplateLearner("t", 3);
    const ids = ["a b c", "d e f", "g h i"].map((text) => one.learn(text).id);
    const late = ["j k l", "m n o", "a b c"].map((text) => other.learn(text).id);
    one = await syncTemplates(store, one);
    other = await syncTemplates(store, other);
    one = await syncTemplates(store, one);
    expect(templatesOf(one)).toEqual(templatesOf(other));
    expect(ids.map((id) => other.resolve(id)?.text)).toEqual(["a b c", "d e f", "g h i"]);
    expect(late.map((id) => one.resolve(id)?.text)).toEqual([OVERFLOW, OVERFLOW, "a b c"]);
  });

  it("a save that loses the race loads again; one that always loses says so", async () => {
    const inner = createMemoryTemplateStore();
    let races = 2;
    const racing: TemplateStore = {
      load: (scope) => inner.load(scope),
      async save(scope, state, expected) {
        if (races-- > 0) await inner.save(scope, restored(new TemplateLearner("t").snapshot()).snapshot(), expected);
        return inner.save(scope, state, expected);
      },
    };
    const learner = new TemplateLearner("t");
    learner.learn("lost and found");
    expect(templatesOf(await syncTemplates(racing, learner))).toEqual(templatesOf(learner));
    races = Number.POSITIVE_INFINITY;
    learner.learn("and lost again");
    await expect(syncTemplates({ ...racing, save: async () => false }, learner)).rejects.toMatchObject({
      code: "revision_conflict",
    });
  });
});
