// The differences between two steps on one text. Pure: entities in, differences out.

const overlaps = (one, other) => one.start < other.end && other.start < one.end;
const sameWords = (one, other) => one.start === other.start && one.end === other.end;

/**
 * Every entity of both sides is in exactly one difference or is the same on both.
 * Kinds: lost, gained, retyped (another type), moved (the same type, other boundaries).
 */
export function differences(before, after) {
  const left = new Set(before);
  const right = new Set(after);
  const found = [];
  const pair = (fits, kind) => {
    for (const old of [...left]) {
      const match = [...right].find((fresh) => fits(old, fresh));
      if (!match) continue;
      left.delete(old);
      right.delete(match);
      if (kind) found.push({ kind, old, fresh: match });
    }
  };
  pair((a, b) => sameWords(a, b) && a.type === b.type, null);
  pair(sameWords, "retyped");
  pair((a, b) => overlaps(a, b) && a.type === b.type, "moved");
  pair(overlaps, "retyped");
  for (const old of left) found.push({ kind: "lost", old, fresh: null });
  for (const fresh of right) found.push({ kind: "gained", old: null, fresh });
  const place = ({ old, fresh }) => (old ?? fresh).start;
  return found.sort((a, b) => place(a) - place(b));
}

/** Entity -> kind, for marking one side's text. */
export function kindsOf(found, side) {
  return new Map(found.filter((d) => d[side]).map((d) => [d[side], d.kind]));
}
