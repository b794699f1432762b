// What both lives share.
declare const process: { argv: string[]; exit(code: number): never };

export const host = process.argv[2]!;
export const adapters = ["validation", "dns", "pullsecret", "hypershift"];

export function check(ok: boolean, what: string, found: unknown): asserts ok {
  if (!ok) {
    console.error("clients:", process.argv[1], what, found);
    process.exit(1);
  }
}
