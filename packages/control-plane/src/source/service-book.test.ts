import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { openBook, turnPage, type Book, type Reading } from "./service-book.ts";

const text = (name: string, host = `${name}.example`) =>
  `service: ${name}\nkey: none\nhosts: [${host}]\n`;

function read(files: Readonly<Record<string, string>>, more: Partial<Reading> = {}): Reading {
  return {
    files: Object.entries(files).map(([file, content]) => ({ file, text: content })),
    failure: "",
    removed: new Set(),
    ...more,
  };
}

const hostsOf = (book: Book) =>
  Object.fromEntries([...book.served].map(([name, { service }]) => [name, service.hosts.join()]));
const statesOf = (book: Book) =>
  Object.fromEntries(book.files.map(({ file, state }) => [file, state]));

const ab = turnPage(openBook(), read({ "a.yaml": text("a"), "b.yaml": text("b") }));

test("good files are served", () => {
  assert.deepEqual(hostsOf(ab), { a: "a.example", b: "b.example" });
  assert.deepEqual(statesOf(ab), { "a.yaml": "serving", "b.yaml": "serving" });
});

test("rule 8: a file that breaks goes on with its last good text and blocks nobody", () => {
  const next = turnPage(
    ab,
    read({ "a.yaml": "service: a\nkye: none\n", "b.yaml": text("b", "c.example") }),
  );
  assert.deepEqual(hostsOf(next), { a: "a.example", b: "c.example" });
  assert.deepEqual(statesOf(next), { "a.yaml": "last-good", "b.yaml": "serving" });
  assert.equal(next.files[0]?.problems.length, 2);
});

test("rule 8: also a file of which not even the name can be read", () => {
  const next = turnPage(ab, read({ "a.yaml": "{{{", "b.yaml": text("b") }));
  assert.deepEqual(statesOf(next), { "a.yaml": "last-good", "b.yaml": "serving" });
  const again = turnPage(next, read({ "a.yaml": text("a", "new.example"), "b.yaml": text("b") }));
  assert.deepEqual(hostsOf(again), { a: "new.example", b: "b.example" });
});

test("rule 7: a folder that cannot be read, or is empty all at once, changes nothing", () => {
  const lost = turnPage(ab, read({}, { failure: "the folder is gone" }));
  assert.deepEqual(hostsOf(lost), hostsOf(ab));
  assert.equal(lost.alarm, "the folder is gone");
  const empty = turnPage(lost, read({}));
  assert.deepEqual(hostsOf(empty), hostsOf(ab));
  assert.match(empty.alarm, /2 services \(a, b\) stay/);
  assert.equal(turnPage(empty, read({ "a.yaml": text("a") })).alarm, "");
});

test("one file of several that goes takes its service with it", () => {
  assert.deepEqual(hostsOf(turnPage(ab, read({ "b.yaml": text("b") }))), { b: "b.example" });
});

test("the last service goes if its removal was ordered", () => {
  const one = turnPage(openBook(), read({ "a.yaml": text("a") }));
  assert.deepEqual(hostsOf(turnPage(one, read({}, { removed: new Set(["a"]) }))), {});
});

test("a file may be renamed, and its service too", () => {
  const moved = turnPage(ab, read({ "c.yaml": text("a"), "b.yaml": text("b") }));
  assert.deepEqual(hostsOf(moved), hostsOf(ab));
  const renamed = turnPage(ab, read({ "a.yaml": text("z"), "b.yaml": text("b") }));
  assert.deepEqual(Object.keys(hostsOf(renamed)), ["b", "z"]);
});

test("a newcomer that claims a host of another is refused", () => {
  const next = turnPage(
    ab,
    read({ "0.yaml": text("zero", "a.example"), "a.yaml": text("a"), "b.yaml": text("b") }),
  );
  assert.deepEqual(hostsOf(next), hostsOf(ab));
  assert.equal(statesOf(next)["0.yaml"], "refused");
  assert.match(next.files[0]?.problems[0]?.what ?? "", /belongs to a/);
});

test("a change that claims a host of another leaves both as they were", () => {
  const next = turnPage(ab, read({ "a.yaml": text("a", "b.example"), "b.yaml": text("b") }));
  assert.deepEqual(hostsOf(next), hostsOf(ab));
  assert.deepEqual(statesOf(next), { "a.yaml": "last-good", "b.yaml": "serving" });
});

test("two services may swap their hosts in one step", () => {
  const next = turnPage(
    ab,
    read({ "a.yaml": text("a", "b.example"), "b.yaml": text("b", "a.example") }),
  );
  assert.deepEqual(hostsOf(next), { a: "b.example", b: "a.example" });
});

test("a swap goes through although a newcomer in the same step is refused", () => {
  const next = turnPage(
    ab,
    read({
      "0.yaml": text("zero", "a.example"),
      "a.yaml": text("a", "b.example"),
      "b.yaml": text("b", "a.example"),
    }),
  );
  assert.deepEqual(hostsOf(next), { a: "b.example", b: "a.example" });
  assert.equal(statesOf(next)["0.yaml"], "refused");
});

test("a thousand files of which one changes are not parsed again", () => {
  const names = Array.from({ length: 1000 }, (_, index) => `s${index}`);
  const files = Object.fromEntries(names.map((name) => [`${name}.yaml`, text(name)]));
  const first = turnPage(openBook(), read(files));
  const next = turnPage(first, read({ ...files, "s5.yaml": text("s5", "other.example") }));
  const same = names.filter(
    (name) => next.served.get(name)?.service === first.served.get(name)?.service,
  );
  assert.equal(same.length, 999);
});

test("a second file of one name is refused, the first stays", () => {
  const next = turnPage(
    ab,
    read({ "0.yaml": text("a", "other.example"), "a.yaml": text("a"), "b.yaml": text("b") }),
  );
  assert.equal(next.served.size, 2);
  assert.deepEqual(hostsOf(next), hostsOf(ab));
  assert.equal(statesOf(next)["0.yaml"], "refused");
});

const content = fc.constantFrom(
  text("a"),
  text("b"),
  text("c"),
  text("a", "b.example"),
  text("b", "x.example"),
  "{",
  "service: a\n",
);
const folder = fc.dictionary(fc.constantFrom("a.yaml", "b.yaml", "c.yaml"), content, {
  maxKeys: 3,
});

test("whatever happens to the folder, what is served is unambiguous and only an order empties it", () => {
  fc.assert(
    fc.property(fc.array(folder, { maxLength: 6 }), (folders) => {
      let book = openBook();
      for (const files of folders) {
        const next = turnPage(book, read(files));
        const hosts = [...next.served.values()].flatMap(({ service }) => service.hosts);
        assert.equal(new Set(hosts).size, hosts.length);
        for (const [name, { service }] of next.served) assert.equal(name, service.name);
        if (book.served.size > 0 && Object.keys(files).length === 0)
          assert.equal(next.served, book.served);
        const still = turnPage(next, read(files));
        assert.deepEqual(hostsOf(still), hostsOf(next), "the same reading changes nothing");
        book = next;
      }
    }),
  );
});
