#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/render/elastic_lines.hpp"
#include "cli/render/render.hpp"
#include "cli/render/render_finding.hpp"
#include "rehearsal/explore/world_sizes.hpp"
#include "rehearsal/findings/compiled_graphs.hpp"
#include "rehearsal/findings/expert_load.hpp"
#include "rehearsal/findings/staleness.hpp"
#include "rehearsal/findings/weight_spread.hpp"

namespace lockstep::cli {

namespace {

std::string joined(const std::vector<std::string>& texts, const char* between) {
  std::string out;
  for (const std::string& text : texts) {
    out += (out.empty() ? "" : between) + text;
  }
  return out;
}

std::string sizes_text(const std::vector<int32_t>& sizes) {
  std::vector<std::string> texts;
  for (const int32_t size : sizes) {
    texts.push_back(std::to_string(size));
  }
  return joined(texts, ", ") + (sizes == std::vector<int32_t>{1} ? " rank" : " ranks");
}

std::string looked_at(const Rehearsal& rehearsal) {
  const Coverage& coverage = rehearsal.coverage;
  std::vector<std::string> texts = {sizes_text(coverage.world_sizes)};
  if (coverage.epochs > 0) {
    texts.push_back(plural(coverage.epochs, "epoch"));
  }
  const Prediction& prediction = rehearsal.results.prediction;
  if (prediction.simulated_steps < prediction.steps) {
    texts.push_back(fmt::format(
        "{} (of which {} repeat earlier ones: {})", plural(prediction.steps, "step"),
        prediction.steps - prediction.simulated_steps,
        rehearsal.run.preparation.repetition.counted.empty()
            ? "no statement depends on what differs between them"
            : "what statements decide by batch_idx, epoch and global_step is the same in them"));
  }
  if (prediction.micro_batches) {
    const MicroBatches& micro_batches = *prediction.micro_batches;
    texts.push_back(fmt::format("{} micro-batches a step (of which {} repeat earlier ones)",
                                micro_batches.all, micro_batches.all - micro_batches.simulated));
  }
  const auto ranks = static_cast<int64_t>(rehearsal.run.result.ends.size());
  const RankClasses* const classes = rehearsal.run.preparation.options.classes.get();
  if (classes != nullptr) {
    texts.push_back(
        fmt::format("{} ranks for all {} (nothing in the program tells the others from these)",
                    classes->size(), ranks));
  }
  if (rehearsal.run.result.ends.empty() || coverage.schedules == 0) {
    return joined(texts, ", ");
  }
  texts.insert(texts.end(), coverage.looked_at.begin(), coverage.looked_at.end());
  if (!rehearsal.run.undecided.empty()) {
    texts.push_back("the beginning of one run");
  } else if (is_real(rehearsal.world)) {
    texts.push_back("one real run, " + std::string(description_of(rehearsal.world)));
  } else if (!coverage.free) {
    texts.push_back("all schedules (only one: this run is deterministic)");
  } else {
    texts.push_back(plural(coverage.schedules, "schedule"));
  }
  return joined(texts, ", ");
}

// To be asked for, or why they cannot be.
std::string other_world_sizes(const Rehearsal& rehearsal) {
  std::vector<std::string> sizes;
  std::string why_not;
  for (const int64_t size : {2, 8}) {
    const Resized resized = resized_to(rehearsal, size);
    if (resized.why_not.empty()) {
      sizes.push_back(std::to_string(size));
    } else {
      why_not = resized.why_not;
    }
  }
  return sizes.empty() ? fmt::format("other world sizes ({})", why_not)
                       : fmt::format("other world sizes (--set 'verify.world_sizes=[{}]')",
                                     fmt::join(sizes, ","));
}

std::string not_looked_at(const Rehearsal& rehearsal) {
  const Scenario& scenario = *rehearsal.scenario;
  std::vector<std::string> texts = rehearsal.coverage.not_looked_at;
  if (!scenario.verify || scenario.verify->world_sizes.empty()) {
    texts.push_back(other_world_sizes(rehearsal));
  }
  texts.push_back("code that is not described in the scenario");
  return joined(texts, ", ");
}

// As lines of a scenario, so that they can be kept.
std::string drawn_faults(const Rehearsal& rehearsal) {
  if (rehearsal.drawn_faults.empty()) {
    return "";
  }
  std::string out = fmt::format("drawn from seed {}; add these lines to repeat it:\nfaults:\n",
                                value_or(rehearsal.scenario->seed, int64_t{0}));
  for (const std::string& fault : rehearsal.drawn_faults) {
    out += "  - " + fault + "\n";
  }
  return out + "\n";
}

// Expectations by the reason why they are not judged, in the order of the file.
std::string not_judged(const std::vector<Judged>& all) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;
  for (const Judged& one : all) {
    if (one.judged) {
      continue;
    }
    auto known = std::find_if(by_reason.begin(), by_reason.end(),
                              [&](const auto& entry) { return entry.first == one.actual; });
    if (known == by_reason.end()) {
      by_reason.push_back({one.actual, {}});
      known = by_reason.end() - 1;
    }
    known->second.push_back(one.text);
  }
  std::string out;
  for (const auto& [reason, texts] : by_reason) {
    out += fmt::format("  not judged  {}: {}\n", joined(texts, "; "), reason);
  }
  return out;
}

}  // namespace

std::string title_of(const Rehearsal& rehearsal) {
  const Scenario& scenario = *rehearsal.scenario;
  return printable(scenario.name.empty() ? scenario.file : scenario.file + ":" + scenario.name);
}

std::string render_findings(const Rehearsal& rehearsal, const Style& style) {
  std::string out = render_problems(rehearsal.problems, *rehearsal.sources, style);
  for (const Finding& finding : rehearsal.findings) {
    out += render_finding(finding, rehearsal.sites, *rehearsal.sources, style,
                          ignore_reason(*rehearsal.scenario, finding.code));
    out += "\n";
  }
  if (!rehearsal.run.world_failure.empty()) {
    out += style.error("error") + ": " + rehearsal.run.world_failure + "\n";
  }
  return out;
}

std::string render_undecided(const Rehearsal& rehearsal, const Style& style) {
  return rehearsal.undecided.empty()
             ? ""
             : fmt::format("{}: {}\n", style.warning("undecided"), rehearsal.undecided);
}

std::string render_expectations(const Rehearsal& rehearsal, const Style& style) {
  const std::vector<Judged>& all = rehearsal.expectations;
  if (all.empty()) {
    return "";
  }
  const auto judged =
      std::count_if(all.begin(), all.end(), [](const Judged& one) { return one.judged; });
  const auto met = std::count_if(all.begin(), all.end(),
                                 [](const Judged& one) { return one.judged && one.met; });
  std::string out;
  if (judged > 0) {
    out = fmt::format("expect: {} of {} met\n", met, judged);
  }
  for (const Judged& one : all) {
    if (one.judged && !one.met) {
      out += fmt::format("  {}  {}{}\n", style.error("not met"), one.text,
                         one.actual.empty() ? "" : ": " + one.actual);
    }
  }
  return out + not_judged(all);
}

std::string render_verify(const Rehearsal& rehearsal, const Style& style) {
  std::string out = drawn_faults(rehearsal) + render_findings(rehearsal, style);
  if (!rehearsal.run.world_failure.empty()) {
    return out;
  }
  if (!rehearsal.ran()) {
    return out + render_undecided(rehearsal, style) + render_expectations(rehearsal, style);
  }
  const int64_t errors = rehearsal.count(Level::error);
  const int64_t warnings = rehearsal.count(Level::warning);
  const std::string nothing = rehearsal.undecided.empty()
                                  ? style.good("no findings") + "."
                                  : style.warning("undecided") + ": " + rehearsal.undecided + ".";
  out += render_logged(rehearsal);
  out += render_decided(rehearsal);
  out += weight_spread_text(rehearsal.run);
  out += staleness_text(rehearsal.run);
  out += compiled_graphs_text(rehearsal.run);
  out += rehearsal.run.preparation.plan.numerics ? expert_load_text(rehearsal.run, false) : "";
  out += restarts_line(rehearsal);
  out += rehearsal.findings.empty()
             ? nothing
             : fmt::format("{}, {}.", plural(errors, "error"), plural(warnings, "warning"));
  out += fmt::format(" Checked: {}.\n", looked_at(rehearsal));
  out += fmt::format("Not checked: {}.\n", not_looked_at(rehearsal));
  if (!rehearsal.findings.empty()) {
    out += render_undecided(rehearsal, style);
  }
  return out + render_expectations(rehearsal, style);
}

}  // namespace lockstep::cli
