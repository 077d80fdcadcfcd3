// What the page asks its server. Addresses are relative, so the token stays in front of them.

const PATIENCE = 20000; // milliseconds: reading a large picture takes one or two

class Refused extends Error {}

async function asked(address, options = {}) {
  let reply;
  try {
    reply = await fetch(address, { ...options, signal: AbortSignal.timeout(PATIENCE) });
  } catch {
    throw new Refused("The program does not answer. Is it still running? Start it again, and open the address that it shows.");
  }
  const content = await reply.json().catch(() => ({}));
  if (!reply.ok) throw new Refused(content.error ?? `The program refused (${reply.status}).`);
  return content;
}

const read = (verb, query = {}) => asked(`${verb}?${new URLSearchParams(query)}`);

const send = (verb, body) => asked(verb, {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});
