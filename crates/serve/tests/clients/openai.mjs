// The official OpenAI client for JavaScript, unchanged: node openai.mjs ADDRESS FOLDER, where FOLDER has
// node_modules with it.

import assert from "node:assert";
import { createRequire } from "node:module";

const [address, folder] = process.argv.slice(2);
const { OpenAI } = createRequire(`${folder}/package.json`)("openai");
const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: "none", maxRetries: 0 });
const model = "toy/read";
const messages = [{ role: "user", content: "Who is the mascot of the San Francisco Giants?" }];

const reply = await client.chat.completions.create({ model, messages });
const text = reply.choices[0].message.content;
assert.ok(text.startsWith("Lou Seal") && text.includes("[1]"), text);
let said = "";
for await (const chunk of await client.chat.completions.create({ model, messages, stream: true })) {
  said += chunk.choices[0]?.delta?.content ?? "";
}
assert.equal(said, text);
const names = [];
for await (const found of await client.models.list()) names.push(found.id);
assert.ok(names.includes(model), names.join());
await assert.rejects(client.chat.completions.create({ model: "no-such", messages }), { status: 404 });
