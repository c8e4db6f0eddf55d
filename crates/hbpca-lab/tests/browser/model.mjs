// Opens the page about a model in headless Chromium and uses it as a reader would.
//
//   node model.mjs REPORT.html [SCREENSHOT-FOLDER]
//
// The page was made with labelled data, so that every chart is there. Ends as report.mjs does.

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [report, screenshots] = process.argv.slice(2);
if (!report || !existsSync(report)) {
  console.error("usage: node model.mjs REPORT.html [SCREENSHOT-FOLDER]");
  process.exit(2);
}
const places = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const executablePath = places.find(place => place && existsSync(place));
if (!executablePath) {
  console.log("skipped: no Chromium found; name one by the variable CHROMIUM");
  process.exit(77);
}

let failures = 0;
function check(holds, what) {
  console.log(`${holds ? "ok  " : "FAIL"} ${what}`);
  failures += holds ? 0 : 1;
}

const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--disable-quic"],
});
try {
  const address = pathToFileURL(resolve(report)).href;
  const complaints = [];
  async function open(options) {
    const context = await browser.newContext({ offline: true, ...options });
    const page = await context.newPage();
    page.on("console", message => message.type() === "error" && complaints.push(message.text()));
    page.on("pageerror", error => complaints.push(String(error)));
    page.on("request", request => /^(file|data|blob):/.test(request.url()) || complaints.push(`asked for ${request.url()}`));
    await page.goto(address);
    await page.waitForFunction(() => document.documentElement.dataset.ready === "yes", null, { timeout: 60000 });
    return page;
  }

  const page = await open({ viewport: { width: 1280, height: 900 }, colorScheme: "light" });
  const charts = await page.evaluate(() => [...document.querySelectorAll("[data-chart]")].map(place => ({
    name: place.dataset.chart, words: place.getAttribute("aria-label"), marks: place.querySelectorAll("rect, circle").length,
    share: place.querySelector("svg").getBoundingClientRect().width / place.closest("figure").getBoundingClientRect().width })));
  const names = charts.map(chart => chart.name).sort().join(" ");
  check(names === "convergence heat outliers scores scree", `all charts are there (${names})`);
  for (const chart of charts) {
    check(chart.marks > 1 && chart.share > 0.9, `chart ${chart.name} is drawn and fills its figure (${chart.marks} marks, ${chart.share.toFixed(2)})`);
    check(Boolean(chart.words), `chart ${chart.name} has a text alternative`);
  }

  // Hover: a bar, a cell, a dot, an outlier, an iterate.
  for (const [chart, mark, words] of [["scree", ".bar", /Component 1.*of the variance/s], ["heat", ".cells rect", /component 1: /],
    ["scores", "circle", /row \d+.*component 1: /s], ["outliers", "circle.outlier", /score distance/], ["convergence", "circle.curve-dot", /residual/]]) {
    const target = page.locator(`[data-chart=${chart}] ${mark}`).first();
    await target.scrollIntoViewIfNeeded();
    const box = await target.boundingBox();
    await page.mouse.move(box.x + box.width / 2 - 1, box.y + Math.min(box.height / 2, 5));
    await page.mouse.move(box.x + box.width / 2, box.y + Math.min(box.height / 2, 5));
    const shown = await page.evaluate(() => { const tip = document.getElementById("tip"); return tip.hidden ? "" : tip.innerText; });
    check(words.test(shown), `hovering over ${chart} speaks (${shown.replace(/\n/g, " · ")})`);
    await page.mouse.move(1, 1);
  }

  const dots = () => page.evaluate(() => document.querySelectorAll("[data-chart=scores] .dots circle").length);
  const button = page.locator("button.category").first();
  const before = await dots();
  await button.focus();
  await page.keyboard.press("Space");
  const after = await dots();
  check(after < before && await button.getAttribute("aria-pressed") === "false", `a category is hidden by keyboard (${before} → ${after} dots)`);
  await button.click();
  check(await dots() === before, "and comes back");
  const title = () => page.evaluate(() => [...document.querySelectorAll("[data-chart=scores] .title")].map(x => x.textContent).join(" | "));
  const plane = await title();
  await page.locator("#score-y").selectOption("2");
  check(/component 3/.test(await title()) && await title() !== plane, `the plane is chosen (${plane} → ${await title()})`);
  await page.locator("#score-y").selectOption("1");
  const colours = await page.evaluate(() => [...document.querySelectorAll("button.category .swatch")].map(x => getComputedStyle(x).backgroundColor));
  check(new Set(colours).size === colours.length && colours.length > 1, `categories have ${colours.length} different colours`);

  for (const width of [400, 700, 1000, 1600]) {
    const sized = await open({ viewport: { width, height: 900 }, colorScheme: width === 400 ? "dark" : "light" });
    const widths = await sized.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    check(widths[0] <= widths[1], `no horizontal scrolling at ${width} px (content ${widths[0]}, window ${widths[1]})`);
    const cut = await sized.evaluate(() => [...document.querySelectorAll("[data-chart] svg")].flatMap(svg => {
      const frame = svg.getBoundingClientRect();
      return [...svg.querySelectorAll("text")].filter(text => {
        const box = text.getBoundingClientRect();
        return box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
      }).map(text => `${svg.parentNode.id}: ${text.textContent}`);
    }));
    check(cut.length === 0, `no text is cut at ${width} px ${cut.slice(0, 5).join(" | ")}`);
    if (screenshots) await sized.screenshot({ path: `${screenshots}/model-${width}.png`, fullPage: true });
    if (width === 1600) {
      await sized.setViewportSize({ width: 500, height: 900 });
      await sized.waitForTimeout(300);
      const box = await sized.evaluate(() => document.querySelector("#scree svg").viewBox.baseVal.width);
      check(box < 500, `charts are drawn anew when the window changes (${box})`);
    }
    await sized.context().close();
  }

  const dark = await open({ viewport: { width: 1280, height: 900 }, colorScheme: "dark" });
  const paper = target => target.evaluate(() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector("svg .title")).fill]);
  const [day, night] = [await paper(page), await paper(dark)];
  check(day[0] !== night[0] && day[1] !== night[1], `dark mode changes paper and ink (${day} → ${night})`);
  if (screenshots) await dark.screenshot({ path: `${screenshots}/model-dark.png`, fullPage: true });
  await dark.emulateMedia({ media: "print", colorScheme: "dark" });
  const printed = await paper(dark);
  check(printed[0] === day[0] && printed[1] === day[1], `printing a dark page is dark on white (${printed})`);
  await dark.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
  const drawn = () => dark.evaluate(() => document.querySelector("#scree svg").viewBox.baseVal.width);
  const onPaper = await drawn();
  await dark.evaluate(() => window.dispatchEvent(new Event("afterprint")));
  check(onPaper < 700 && await drawn() > 700, `charts are drawn for the width of paper (${onPaper})`);
  if (screenshots) await dark.pdf({ path: `${screenshots}/model.pdf`, format: "A4", printBackground: false });
  check(complaints.length === 0, `no errors on the console and nothing fetched ${complaints.join(" | ")}`);
} finally {
  await browser.close();
}
process.exit(failures ? 1 : 0);
