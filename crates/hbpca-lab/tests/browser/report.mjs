// Opens a report in headless Chromium and uses it as a reader would.
//
//   node report.mjs REPORT.html [SCREENSHOT-FOLDER]
//
// The browser is $CHROMIUM, or the first of the usual places. Ends with 0 when every check holds, 1 when one does not,
// 77 (skipped) when there is no browser.

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [report, screenshots] = process.argv.slice(2);
if (!report || !existsSync(report)) {
  console.error("usage: node report.mjs REPORT.html [SCREENSHOT-FOLDER]");
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
  const charts = await page.evaluate(() => {
    const data = JSON.parse(document.getElementById("chart-data").textContent);
    return data.map(chart => ({ id: chart.id, seconds: chart.seconds !== null, drawn:
      document.getElementById(chart.id).querySelectorAll(".scatterlayer .trace, .heatmaplayer .hm, .barlayer .trace").length }));
  });
  check(charts.length > 0, `the page has charts (${charts.length})`);
  for (const chart of charts) check(chart.drawn > 0, `chart ${chart.id} is drawn`);
  check(await page.evaluate(() => [...document.querySelectorAll(".chart")].every(x => x.getAttribute("aria-label"))),
    "every chart has a text alternative");

  const race = charts.find(chart => chart.seconds);
  if (race) {
    const lines = () => page.evaluate(id => document.getElementById(id).querySelectorAll(".scatterlayer .trace").length, race.id);
    const box = page.locator("input.solver").first();
    const before = await lines();
    await box.focus();
    await page.keyboard.press("Space");
    const after = await lines();
    check(after < before, `switching a solver off by keyboard hides its line (${before} → ${after} traces)`);
    await box.check();
    check(await lines() === before, "switching it on again brings it back");

    const title = () => page.evaluate(id => document.getElementById(id).layout.xaxis.title.text, race.id);
    const passes = await title();
    await page.locator("input[name=abscissa][value=seconds]").check();
    check(await title() !== passes && /seconds/.test(await title()), `the abscissa switches (${passes} → ${await title()})`);
    await page.locator("input[name=abscissa][value=passes]").check();

    const type = () => page.evaluate(id => document.getElementById(id).layout.xaxis.type, race.id);
    const even = await type();
    await page.locator("#logarithmic").check();
    check(even === "linear" && await type() === "log", `the abscissa becomes logarithmic (${even} → ${await type()})`);
    await page.locator("#logarithmic").uncheck();

    const range = () => page.evaluate(id => document.getElementById(id)._fullLayout.xaxis.range.map(Number), race.id);
    const width = ([low, high]) => high - low;
    const whole = await range();
    await page.locator(`#${race.id}`).focus();
    await page.keyboard.press("+");
    await page.waitForTimeout(200);
    const zoomed = await range();
    check(width(zoomed) < 0.8 * width(whole), `the keyboard zooms a chart (${whole} → ${zoomed})`);
    await page.keyboard.press("0");
    await page.waitForTimeout(200);
    check(Math.abs(width(await range()) - width(whole)) < 1e-9 * width(whole), "and brings it back");
    const area = await page.locator(`#${race.id} .nsewdrag`).first().boundingBox();
    await page.mouse.move(area.x + 0.3 * area.width, area.y + 0.3 * area.height);
    await page.mouse.down();
    await page.mouse.move(area.x + 0.7 * area.width, area.y + 0.7 * area.height, { steps: 6 });
    await page.mouse.up();
    await page.waitForTimeout(200);
    check(width(await range()) < 0.5 * width(whole), "dragging zooms a chart");
    await page.keyboard.press("0");
    await page.waitForTimeout(200);

    await page.locator(`#${race.id}`).scrollIntoViewIfNeeded();
    const point = await page.evaluate(id => {
      const points = document.getElementById(id).querySelectorAll(".scatterlayer .trace .points path");
      const middle = points[Math.floor(points.length / 2)].getBoundingClientRect();
      return { x: middle.x + middle.width / 2, y: middle.y + middle.height / 2 };
    }, race.id);
    await page.mouse.move(point.x - 3, point.y);
    await page.mouse.move(point.x, point.y, { steps: 4 });
    await page.waitForFunction(id => document.getElementById(id).querySelector(".hoverlayer .hovertext"), race.id, { timeout: 5000 })
      .catch(() => {});
    const hover = await page.evaluate(id => document.getElementById(id).querySelector(".hoverlayer")?.textContent ?? "", race.id);
    check(/\d/.test(hover), `hovering shows values (${hover.trim()})`);
    await page.mouse.move(0, 0);
  }
  if (screenshots) await page.screenshot({ path: `${screenshots}/light.png`, fullPage: true });

  const narrow = await open({ viewport: { width: 400, height: 800 }, colorScheme: "dark" });
  const widths = await narrow.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  check(widths[0] <= widths[1], `no horizontal scrolling at 400 px (content ${widths[0]}, window ${widths[1]})`);
  if (screenshots) {
    await narrow.screenshot({ path: `${screenshots}/narrow-dark.png`, fullPage: true });
    const night = await open({ viewport: { width: 1280, height: 900 }, colorScheme: "dark" });
    await night.screenshot({ path: `${screenshots}/dark.png`, fullPage: true });
  }
  const printed = await open({ viewport: { width: 1000, height: 1400 }, colorScheme: "dark" });
  const ink = () => printed.evaluate(() => document.querySelector(".chart .xtitle")?.style.fill);
  const light = await ink();
  await printed.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
  const dark = await ink();
  const closed = await printed.evaluate(() => document.querySelectorAll("details.claim:not([open])").length);
  check(light !== dark && dark === "rgb(0, 0, 0)" && closed === 0, `printing a dark page is black on white (${light} → ${dark})`);
  await printed.evaluate(() => window.dispatchEvent(new Event("afterprint")));
  check(await ink() === light, "and the page is dark again afterwards");
  if (screenshots) await printed.pdf({ path: `${screenshots}/print.pdf`, format: "A4", printBackground: false });
  check(complaints.length === 0, `no errors on the console and nothing fetched ${complaints.join(" | ")}`);
} finally {
  await browser.close();
}
process.exit(failures ? 1 : 0);
