// The official JavaScript client holds a tool-calling conversation: node adapter_client.mjs CLIENT URL MODEL QUESTION STREAM
// What it saw is printed as one JSON object.
const [client, host, model, question, streams] = process.argv.slice(2)
const { Ollama } = await import(client)
const ollama = new Ollama({ host })
const parameters = { type: "object", required: ["city"], properties: { city: { type: "string", description: "which" } } }
const tools = [{ type: "function", function: { name: "get_weather", description: "The weather now.", parameters } }]

async function turn(messages) {
  if (streams !== "true") return (await ollama.chat({ model, messages, tools })).message
  const whole = { role: "assistant", content: "" }
  let done = false
  for await (const part of await ollama.chat({ model, messages, tools, stream: true })) {
    whole.content += part.message.content
    if (part.message.tool_calls) whole.tool_calls = [...(whole.tool_calls ?? []), ...part.message.tool_calls]
    done = part.done
  }
  if (!done) throw new Error("the stream has no end")
  return whole
}

const messages = [{ role: "user", content: question }]
const asked = await turn(messages)
messages.push(asked, { role: "tool", tool_name: "get_weather", content: "snow, -3 °C" })
const answered = await turn(messages)
const listed = (await ollama.list()).models.map((one) => one.model)
const shown = (await ollama.show({ model })).capabilities
const told = (await ollama.generate({ model, prompt: question + " in a word" })).response
let missing = ""
try {
  await ollama.chat({ model: "nobody/nothing", messages })
} catch (error) {
  missing = error.message
}
console.log(JSON.stringify({ asked, answered, listed, shown, told, missing }))
