"""Opens pages in one headless Chromium as a reader would, and prints what is to be seen: a list of JSON objects.

usage: look.py PICTURES PAGE...: looks at each file PAGE, and puts screenshots into the directory PICTURES; none where that is -.
"""

import base64
import json
import pathlib
import re
import sys
import time

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

# Of every chart: how many pixels of its canvas are not see-through, and how many colours they have.
PIXELS = """
return [...document.querySelectorAll('[data-chart]')].map(place => {
  const canvas = place.querySelector('canvas'), seen = new Set();
  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let drawn = 0;
  for (let i = 0; i < data.length; i += 4) if (data[i + 3]) { drawn++; seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]); }
  return {kind: place.dataset.chart, drawn, colours: seen.size, label: place.getAttribute('aria-label')};
});"""


# Of every picture that needs no script: what the pointer meets where its marks are.
MARKS = """
return [...document.querySelectorAll('svg.flow')].map(svg => {
  svg.scrollIntoView({block: 'center'});
  const marks = [...svg.querySelectorAll('.whole, .part, .odd, .node')].map(mark => {
    const {left, top, width, height} = mark.getBoundingClientRect();
    const met = document.elementFromPoint(left + width / 2, top + height / 2);
    return met?.closest('g')?.querySelector('title')?.textContent ?? '';
  });
  return {label: svg.querySelector('title').textContent, words: svg.querySelector('desc').textContent,
    ribbons: svg.querySelectorAll('.ribbon').length, lines: svg.querySelectorAll('path').length, marks};
});"""

# Of every table: its caption, rows, and how wide its bars are in pixels.
TABLES = """
document.querySelectorAll('details').forEach(folded => { folded.open = true; });
const all = [...document.querySelectorAll('table:has(caption)')].map(table => ({
  caption: table.caption.textContent, rows: table.tBodies[0].rows.length,
  bars: [...table.querySelectorAll('.bar > span')].map(bar => bar.getBoundingClientRect().width)}));
document.querySelectorAll('details').forEach(folded => { folded.open = false; });
return all;"""

# Charts without a table of the same.
ALONE = """
return [...document.querySelectorAll('figure')].filter(figure =>
  !figure.querySelector('details table') && !figure.closest('section').querySelector('details table')).length;"""

# What has the focus, and whether it shows.
FOCUS = """
const has = document.activeElement, style = getComputedStyle(has);
return {tag: has.tagName, chart: has.dataset.chart ?? has.closest('[data-chart]')?.dataset.chart ?? null, text: has.textContent.slice(0, 40),
  name: has.getAttribute('aria-label') ?? has.textContent.trim(), shows: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0};"""

# What legends say, with what the style adds behind each name.
LEGENDS = """
return [...document.querySelectorAll('.u-legend')].map(legend => legend.innerText.trim() +
  getComputedStyle(legend.querySelector('th'), '::after').content.replace(/none|"/g, ''));"""

# Done when the page has drawn what it was told by now.
DRAWN = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));"

PAPER_WIDTH = 718  # of A4 without its margins


def browser():
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1100,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


def until(condition, seconds=20):
    """Waits for the page to follow; a condition that never holds is the caller's to find."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    return condition()


class Look:
    def __init__(self, driver, page, pictures):
        self.driver, self.pictures, self.seen = driver, None if pictures == "-" else pathlib.Path(pictures), {}
        self.name, self.text = pathlib.Path(page).stem, pathlib.Path(page).read_text()
        driver.get(pathlib.Path(page).resolve().as_uri())
        until(lambda: driver.execute_script("return document.documentElement.dataset.drawn"))
        self.has_charts = bool(driver.find_elements(By.CSS_SELECTOR, "[data-chart=rates]"))

    def actions(self):
        # The pointer is on its way for a moment; a quarter of a second, which it takes by itself, shows no more.
        return ActionChains(self.driver, duration=50)

    def picture(self, name, top=0, height=1300):
        if not self.pictures:
            return
        name = f"{self.name}-{name}"
        clip = {"x": 0, "y": top, "width": 1100, "height": height, "scale": 1}
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        (self.pictures / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))

    def place(self, kind):
        return self.driver.find_element(By.CSS_SELECTOR, f"[data-chart={kind}]")

    def legend(self, kind):
        values = self.place(kind).find_elements(By.CSS_SELECTOR, ".u-series:not(.edge) .u-value")
        return [value.text for value in values]

    def zoomed(self):
        buttons = self.driver.find_elements(By.CSS_SELECTOR, "[data-chart] .reset")
        return sum(not button.get_attribute("hidden") for button in buttons)

    def hover(self):
        over = self.place("rates").find_element(By.CSS_SELECTOR, ".u-over")
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", over)
        self.actions().move_to_element(over).perform()
        until(lambda: "pps" in " ".join(self.legend("rates")))
        self.seen["hover"] = {"rates": self.legend("rates"), "loss": self.legend("loss"), "legend": next((legend for legend in self.driver.execute_script(LEGENDS) if "time" in legend), "")}
        if self.pictures:
            # Not beyond the window: that would take the pointer away.
            self.driver.save_screenshot(str(self.pictures / f"{self.name}-hover.png"))

    def drag(self):
        over = self.place("rates").find_element(By.CSS_SELECTOR, ".u-over")
        before = self.zoomed()
        self.actions().move_to_element(over).click_and_hold().move_by_offset(150, 0).release().perform()
        during = until(self.zoomed)
        self.actions().double_click(over).perform()
        until(lambda: self.zoomed() == 0)
        self.seen["drag"] = [before, during, self.zoomed()]

    def keyboard(self):
        place = self.place("rates")
        self.driver.execute_script("arguments[0].focus()", place)
        place.send_keys(Keys.HOME)
        place.send_keys(Keys.ARROW_RIGHT)
        said = until(lambda: self.driver.execute_script("return document.getElementById('said').textContent"))
        place.send_keys("+")
        closer = until(self.zoomed)
        place.send_keys("0")
        until(lambda: self.zoomed() == 0)
        self.seen["keyboard"] = {"said": said, "zoomed": [closer, self.zoomed()]}
        row = lambda: place.find_element(By.CSS_SELECTOR, ".u-legend [role=button]")
        pressed = lambda: row().get_attribute("aria-pressed")
        states = [pressed()]
        for _ in range(2):
            row().send_keys(Keys.ENTER)
            states.append(until(lambda: pressed() != states[-1] and pressed(), 5))
            # All charts are drawn again, as on paper.
            self.driver.execute_script("document.getElementById('theme').click()")
            states.append(pressed())
        self.seen["keyboard"]["pressed"] = states

    def tabs(self):
        """Where the tabulator leads from the top of the page, up to its end."""
        top = "const body = document.body; body.tabIndex = -1; body.focus(); body.removeAttribute('tabindex');"
        self.driver.execute_script(top)
        steps = []
        for _ in range(80):
            self.actions().send_keys(Keys.TAB).perform()
            step = self.driver.execute_script(FOCUS)
            if step["tag"] == "BODY" or (steps and step == steps[0]):
                break
            steps.append(step)
        self.seen["tabs"] = steps

    def looks(self, name):
        """The page's colour, and the charts'."""
        back = self.driver.execute_script("return getComputedStyle(document.body).backgroundColor")
        self.driver.execute_async_script(DRAWN)
        self.picture(name)
        return {"back": back, "charts": self.driver.execute_script(PIXELS)}

    def schemes(self):
        self.seen["light"] = self.looks("light")
        emulate = lambda **media: self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        emulate(features=[{"name": "prefers-color-scheme", "value": "dark"}])
        time.sleep(0.3)
        self.seen["dark"] = self.looks("dark")
        pdf = self.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
        paper = base64.b64decode(pdf)
        if self.pictures:
            (self.pictures / f"{self.name}-paper.pdf").write_bytes(paper)
        self.driver.execute_script("dispatchEvent(new Event('beforeprint'))")
        size = {"width": PAPER_WIDTH, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        emulate(media="print", features=[])
        button = self.driver.find_element(By.ID, "theme")
        self.seen["print"] = {
            "is_pdf": paper.startswith(b"%PDF"), "bytes": len(paper), "buttons": button.is_displayed(),
            "too_wide": self.driver.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth"),
            "charts": self.driver.execute_script(PIXELS), "legends": self.driver.execute_script(LEGENDS),
        }
        self.picture("paper")
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        emulate(media="", features=[])
        self.driver.execute_script("dispatchEvent(new Event('afterprint'))")

    def words(self):
        """What stands for parts that are nearly all."""
        formatter = lambda name: re.search(rf"const {name} = (.*);", self.text)[1]
        script = f"return [({formatter('percent')})(arguments[0]), ...arguments[1].map({formatter('share')})]"
        self.seen["nearly"] = self.driver.execute_script(script, 99.99999, [1e7, 3e9, 1e10])

    def facts(self):
        self.seen["flows"] = self.driver.execute_script(MARKS)
        self.seen["alone"] = self.driver.execute_script(ALONE)
        self.seen["verdict"] = self.driver.find_element(By.CSS_SELECTOR, ".verdict .words").text
        self.seen["resources"] = self.driver.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
        self.seen["tables"] = self.driver.execute_script(TABLES)
        self.seen["unnamed"] = self.driver.execute_script(
            "return [...document.querySelectorAll('[role],button,svg')].filter(e => !e.getAttribute('aria-label') && !e.getAttribute('aria-labelledby') && !e.textContent.trim() && e.id !== 'said').length")
        self.seen["log"] = [entry["message"] for entry in self.driver.get_log("browser")]


def main():
    driver = browser()
    try:
        pages = []
        for page in sys.argv[2:]:
            look = Look(driver, page, sys.argv[1])
            look.seen["idle"] = driver.execute_script(LEGENDS)
            charts = (look.hover, look.drag, look.keyboard, look.words) if look.has_charts else ()
            for step in (look.schemes, *charts, look.tabs, look.facts):
                step()
            pages.append(look.seen)
        print(json.dumps(pages))
    finally:
        driver.quit()


main()
