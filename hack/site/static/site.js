// Searches the pages of this version, and links to the other versions.
const root = new URL(".", document.currentScript.src).href;
const field = document.getElementById("search"), results = document.getElementById("results");
let pages;

field.addEventListener("input", async () => {
  pages ??= fetch(root + "index.json").then((answer) => answer.json());
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const rank = (page) => words.every((word) => page.title.toLowerCase().includes(word)) ? 0 : 1;
  const found = words.length === 0 ? [] : (await pages)
    .filter((page) => words.every((word) => (page.title + " " + page.text).toLowerCase().includes(word)))
    .sort((a, b) => rank(a) - rank(b)).slice(0, 20);
  results.replaceChildren(...found.map((page) => {
    const link = document.createElement("a"), item = document.createElement("li");
    link.href = root + page.url;
    link.textContent = page.title;
    item.append(link);
    return item;
  }));
});

fetch(root + "../versions.json").then((answer) => answer.json()).then((versions) => {
  const version = document.getElementById("version"), choice = document.createElement("select");
  choice.setAttribute("aria-label", "Version");
  choice.append(...versions.map((name) => new Option(name, name, false, name === version.textContent)));
  choice.addEventListener("change", () => { location.href = root + "../" + choice.value + "/"; });
  version.replaceChildren(choice);
}).catch(() => {}); // a folder without versions
