// The page of `run --report`, and its drawings.
#include "cli/render/report/report_page.hpp"

#include "cli/render/report/drawings.hpp"
#include "cli/render/report/layer_times.hpp"
#include "cli/render/report/markup.hpp"
#include "tests/unit/rehearsal/measure/advised.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace report_page_test {

namespace {

// Two Costs, of 2 ms and 1 ms forward and 4 ms and 1 ms backward per sample.
std::string two_layers(const std::string& more = "") {
  return "version: 1\ncluster: {preset: p4d, nodes: 1}\n"
         "model: {layers: [{Linear: {in_features: 4, out_features: 4, name: \"<i>&'first\"}}, "
         "{Cost: {parameters: 1000, forward: 2 ms, backward: 4 ms, activation: 1 MiB, name: "
         "slow}}, "
         "{Cost: {parameters: 0, forward: 1 ms, backward: 1 ms, activation: 0 B, name: quick}}], "
         "input: [4], loss: MSELoss}\n"
         "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1}\n"
         "data: {train: {batches: 6, batch_size: 3}}\nverify: {numerics: false}\n" +
         more;
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// Every element that is opened is closed, innermost first; `void_elements` close themselves.
void check_nesting(const std::string& text) {
  std::vector<std::string> open;
  for (size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) {
    const size_t end = text.find('>', at);
    REQUIRE(end != std::string::npos);
    const std::string tag = text.substr(at + 1, end - at - 1);
    const std::string name =
        tag.substr(tag[0] == '/' ? 1 : 0, tag.find_first_of(" /", 1) - (tag[0] == '/' ? 1 : 0));
    if (tag[0] == '/') {
      REQUIRE_FALSE(open.empty());
      CHECK(open.back() == tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/' && tag[0] != '!' && name != "meta" && name != "br") {
      open.push_back(name);
    }
  }
  CHECK(open.empty());
}

}  // namespace

TEST_CASE("a page needs no network and no script, and escapes what a scenario says") {
  const Rehearsal ran = advised(two_layers("expect: ['step_time < 1 s']\n"));
  const std::string page = report_page(ran, "lockstep run 'a<b>.yaml' --report r.html");
  CHECK(page.starts_with("<!DOCTYPE html>"));
  for (const char* needs : {"http:", "https:", "<script", "<link", "@import", "url(", "src="}) {
    INFO(needs);
    CHECK(page.find(needs) == std::string::npos);
  }
  CHECK(page.find("<i>&'first") == std::string::npos);
  CHECK(page.find("&lt;i&gt;&amp;&#39;first") != std::string::npos);
  CHECK(page.find("lockstep run &#39;a&lt;b&gt;.yaml&#39; --report r.html") != std::string::npos);
  for (const char* part : {"step time", "USD", "A steady step", "Memory over the same time",
                           "GPU utilization over time", "Transfers of a step", "Layers",
                           "step_time &lt; 1 s", "What the figures are based on"}) {
    INFO(part);
    CHECK(page.find(part) != std::string::npos);
  }
  check_nesting(page);
  CHECK(page == report_page(ran, "lockstep run 'a<b>.yaml' --report r.html"));
}

TEST_CASE("times of layers are those of a step") {
  const Rehearsal ran = advised(two_layers());
  const DrawnSpan span = drawn_span(ran.run);
  REQUIRE(span.is_step);
  CHECK(span.end - span.begin == *ran.results.prediction.step_time);
  const std::vector<LayerTime> layers = layer_times(ran.run, span);
  const auto layer = [&](const std::string& name) {
    const auto found = std::ranges::find(layers, name, &LayerTime::name);
    REQUIRE(found != layers.end());
    return *found;
  };
  // Three samples.
  CHECK(layer("slow").forward == 6_ms);
  CHECK(layer("slow").backward == 12_ms);
  CHECK(layer("slow").parameters == 1000);
  CHECK(layer("quick").forward == 3_ms);
  CHECK(layer("quick").backward == 3_ms);
}

TEST_CASE("a drawing is one SVG file with a box for each operation that can be seen") {
  const Rehearsal ran = advised(two_layers());
  const std::string svg = plot_of_run(ran);
  CHECK(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  check_nesting(svg);
  // Of 24 ms and some kernels of microseconds, the four of Cost are far apart in colour or time.
  for (const char* box : {"forward slow: 6 ms", "backward slow: 12 ms"}) {
    INFO(box);
    CHECK(count_of(svg, box) == 1);
  }
  CHECK(svg.find("NaN") == std::string::npos);
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.find("inf") == std::string::npos);
}

TEST_CASE("a run that hangs has a page with its findings") {
  const Rehearsal ran = advised(bare_text(2, "    - if: rank == 0\n      then: [{barrier: {}}]\n"));
  const std::string page = report_page(ran, "lockstep run hangs.yaml");
  CHECK(page.find("No prediction") != std::string::npos);
  CHECK(page.find("LS101") != std::string::npos);
  check_nesting(page);
}

TEST_CASE("text of others is escaped for elements and attributes") {
  CHECK(markup_text("a < b & \"c\" > 'd'") == "a &lt; b &amp; &quot;c&quot; &gt; &#39;d&#39;");
  CHECK(markup_text("bell\x07") == "bell\\x07");
}

TEST_CASE("a step is drawn the same where others were left out behind it") {
  // The host is ahead: it waits in the next step while this one still runs.
  const std::string sharded =
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\nmodel: {preset: gpt2, seq_len: 128}\n"
      "optimizer: {AdamW: {lr: 3e-4}}\ndata: {train: {samples: 3100, batch_size: 4}}\n"
      "trainer: {accelerator: gpu, devices: 8, max_epochs: 1, precision: bf16-mixed, "
      "strategy: {FSDPStrategy: {auto_wrap_policy: blocks}}}\n";
  const Rehearsal folded = advised(sharded + "verify: {numerics: false}\n");
  const Rehearsal whole = advised(sharded + "verify: {numerics: false, all_steps: true}\n");
  REQUIRE(folded.results.prediction.simulated_steps < whole.results.prediction.simulated_steps);
  const Drawing drawn = step_drawing(folded);
  CHECK(count_of(drawn.parts, "wait for compute") > 0);
  CHECK(drawn.parts == step_drawing(whole).parts);
}

}  // namespace report_page_test
