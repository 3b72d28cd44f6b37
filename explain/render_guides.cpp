// `explain guides`: claims of public guides, what is so, and the scenarios that show it.
#include <fmt/format.h>

#include "explain/explain_guides.hpp"
#include "explain/guide_sweep.hpp"
#include "explain/scenario_texts.hpp"

namespace lockstep::cli {

namespace {

std::string_view word_of(ClaimVerdict verdict) {
  switch (verdict) {
    case ClaimVerdict::right: return "right";
    case ClaimVerdict::right_only_if: return "right only if";
    case ClaimVerdict::wrong: return "wrong";
  }
  return "";
}

std::string verdict_of(const GuideClaim& claim) {
  return fmt::format("{}{}{}{}", word_of(claim.verdict), claim.only_if.empty() ? "" : " ",
                     claim.only_if,
                     claim.versions == "all" ? "" : fmt::format(" ({})", claim.versions));
}

std::string what_is_missing(const GuideClaim& claim) {
  return fmt::format("{} itself is not modelled", claim.missing_strategy);
}

std::string text_of_claim(const GuideClaim& claim) {
  return fmt::format("{}: {}\n  claim   {}\n  why     {}\n  shown   {}{}\n", claim.name,
                     verdict_of(claim), claim.claim, claim.reason, claim.scenario,
                     claim.missing_strategy.empty() ? "" : "; " + what_is_missing(claim));
}

/// The text of the file that is named, with or without a case.
std::string_view scenario_text(std::string_view name) {
  for (const ScenarioText& scenario : scenario_texts()) {
    if (scenario.path == name.substr(0, name.find(':'))) {
      return scenario.text;
    }
  }
  return "";
}

Json object_of(const GuideClaim& claim) {
  Json json;
  json["name"] = claim.name;
  json["claim"] = claim.claim;
  json["verdict"] = word_of(claim.verdict);
  json["condition"] = claim.only_if.empty() ? Json() : Json(claim.only_if);
  json["versions"] = claim.versions;
  json["reason"] = claim.reason;
  json["scenario"] = claim.scenario;
  json["missing_strategy"] = claim.missing_strategy.empty() ? Json() : Json(claim.missing_strategy);
  return json;
}

Json sweep_json(const GuideClaim& claim) {
  const auto seconds_of = [](const std::optional<Time>& time) {
    return time ? Json(seconds(*time)) : Json();
  };
  Json rows = Json::array();
  for (const SweptPair& pair : sweep_of(claim.scenario, scenario_text(claim.scenario))) {
    rows.push_back({{"name", pair.name},
                    {"parameters", pair.parameters},
                    {"devices", pair.devices},
                    {"step_time_s", seconds_of(pair.step_time)},
                    {"sharded_step_time_s", seconds_of(pair.sharded_step_time)},
                    {"memory_bytes", pair.memory.count()},
                    {"sharded_memory_bytes", pair.sharded_memory.count()}});
  }
  return rows;
}

}  // namespace

std::string guides_text() {
  std::string out = "Common claims in multi-GPU guides, checked\n";
  for (const GuideClaim& claim : guide_claims()) {
    out += "\n" + text_of_claim(claim);
  }
  return out +
         "\n`lockstep explain guides NAME` shows one with its scenario; `lockstep test` judges "
         "those.\n";
}

std::string guide_text(const GuideClaim& claim) {
  const std::string_view scenario = scenario_text(claim.scenario);
  const std::string table =
      claim.is_swept ? "\n" + text_of(sweep_of(claim.scenario, scenario)) : "";
  return fmt::format("{}{}\n{}", text_of_claim(claim), table, scenario);
}

Json guides_json() {
  Json claims = Json::array();
  for (const GuideClaim& claim : guide_claims()) {
    claims.push_back(object_of(claim));
  }
  return {{"schema_version", schema_version}, {"command", "explain"}, {"claims", claims}};
}

Json guide_json(const GuideClaim& claim) {
  Json json = {{"schema_version", schema_version}, {"command", "explain"}};
  json.update(object_of(claim));
  json["scenario_text"] = scenario_text(claim.scenario);
  json["sweep"] = claim.is_swept ? sweep_json(claim) : Json();
  return json;
}

}  // namespace lockstep::cli
