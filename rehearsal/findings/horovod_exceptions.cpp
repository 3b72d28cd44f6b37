#include "rehearsal/findings/horovod_exceptions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "model/strategy/data_parallel/horovod/horovod_sites.hpp"
#include "model/strategy/exchange/negotiation/mismatch.hpp"
#include "properties/diagnosis/last_operation.hpp"
#include "properties/diagnosis/remedy.hpp"
#include "rehearsal/findings/finding_cause.hpp"
#include "rehearsal/findings/guard_of_call.hpp"
#include "rehearsal/findings/met_by_name.hpp"
#include "rehearsal/findings/unmet_names.hpp"

namespace lockstep::cli {

namespace {

constexpr std::string_view error_class = "HorovodInternalError: ";

/// Which ranks ended how.
struct HorovodEnds {
  std::map<std::string, RankSet> mismatch;  ///< by message
  RankSet not_with_join;
  RankSet shut_down;
  RankSet others;  ///< that raised something else
  RankSet finished;
};

HorovodEnds horovod_ends(const OneRun& run) {
  HorovodEnds all;
  for (size_t index = 0; index < run.result.ends.size(); ++index) {
    const RankEnd& end = run.result.ends[index];
    const auto rank = static_cast<int32_t>(index);
    if (end.kind == RankEnd::Kind::finished) {
      all.finished.add(rank);
    } else if (end.kind != RankEnd::Kind::raised) {
      continue;
    } else if (end.message.starts_with(negotiation_errors::mismatch)) {
      all.mismatch[end.message].add(rank);
    } else if (end.message == negotiation_errors::not_with_join) {
      all.not_with_join.add(rank);
    } else if (end.message == negotiation_errors::shut_down) {
      all.shut_down.add(rank);
    } else {
      all.others.add(rank);
    }
  }
  return all;
}

SiteId end_site(const OneRun& run, int32_t rank) {
  return run.result.ends[static_cast<size_t>(rank)].site;
}

std::string description_at(const OneRun& run, SiteId id) {
  const Site* const site = run.preparation.sites.find(id);
  return site == nullptr ? "a call" : site->description;
}

std::vector<std::string> fix_of_call(const std::string& call) {
  RemedyContext context;
  context.operation = call;
  return remedy_for("LS101", context);
}

// An exception as raised_findings() tells it.
bool is_bare_exception(const Finding& finding, const RankSet& ranks) {
  return finding.code.empty() && finding.ranks.intersects(ranks) && !finding.sites.empty() &&
         finding.sites.front().role == SiteRole::exception;
}

// Removes those of these ranks that have such an end, and gives them.
std::vector<Finding> take_bare(std::vector<Finding>& findings, const RankSet& ranks,
                               std::string_view message) {
  std::vector<Finding> taken;
  std::erase_if(findings, [&](const Finding& finding) {
    const bool takes =
        is_bare_exception(finding, ranks) && finding.title.find(message) != std::string::npos;
    if (takes) {
      taken.push_back(finding);
    }
    return takes;
  });
  return taken;
}

// Ranks by the place where they raised.
std::map<SiteId, RankSet> by_end_site(const OneRun& run, const RankSet& ranks) {
  std::map<SiteId, RankSet> places;
  for (const int32_t rank : ranks.ranks()) {
    places[end_site(run, rank)].add(rank);
  }
  return places;
}

void add_ends(const OneRun& run, const RankSet& ranks, Finding& finding) {
  for (const auto& [site, at] : by_end_site(run, ranks)) {
    const std::string& message = run.result.ends[static_cast<size_t>(at.first())].message;
    finding.did.push_back({at, 0, raised_text(message), site});
    const bool is_known =
        std::ranges::find(finding.sites, site, &FindingSite::site) != finding.sites.end();
    if (!is_known) {
      finding.sites.push_back({site, SiteRole::other, "on " + at.phrase()});
    }
  }
}

// Shapes, types, reductions or roots differ.
void tell_mismatch(const OneRun& run, const std::string& message, const RankSet& ranks,
                   std::vector<Finding>& findings) {
  if (take_bare(findings, ranks, message).empty()) {
    return;
  }
  Finding finding = finding_of("LS104", Level::error, message.substr(error_class.size()));
  finding.ranks = ranks;
  add_ends(run, ranks, finding);
  finding.sites.front().role = SiteRole::subject;
  for (RankAction& action : finding.did) {
    action.operation = "raised HorovodInternalError";
  }
  finding.follows = {fmt::format(
      "all that wait for this name raise HorovodInternalError: Horovod compares what the ranks "
      "hand over before it reduces anything")};
  finding.fix = {"give the tensor the same shape, type, reduction and root on every rank, and",
                 "tensors that are not the same one different names"};
  findings.push_back(std::move(finding));
}

// Ranks that wait in a join, while others ask for what needs all ranks.
void tell_joined(const OneRun& run, const HorovodEnds& ends, std::vector<Finding>& findings) {
  const auto places = by_end_site(run, ends.shut_down);
  if (places.empty()) {
    return;
  }
  take_bare(findings, ends.not_with_join, negotiation_errors::not_with_join);
  take_bare(findings, ends.shut_down, negotiation_errors::shut_down);
  const bool is_bare_program = run.preparation.scenario->is_bare_program();
  for (const auto& [site, joined] : places) {
    const bool at_end = site == site_id(horovod_sites::join);
    const std::string call = description_at(run, site);
    const std::string never = fmt::format("{} never {} it", ends.not_with_join.phrase(),
                                          ends.not_with_join.size() == 1 ? "calls" : "call");
    Finding finding = finding_of(
        "LS101", Level::error,
        at_end || is_bare_program
            ? fmt::format("{} {} joined, and {} {} what needs all ranks", joined.phrase(),
                          joined.size() == 1 ? "has" : "have", ends.not_with_join.phrase(),
                          ends.not_with_join.size() == 1 ? "calls" : "call")
            : fmt::format("{} {} in the join of {}: {}", joined.phrase(),
                          joined.size() == 1 ? "waits" : "wait", call, never));
    finding.ranks = joined;
    finding.sites.push_back({site, SiteRole::subject, "joins on " + joined.phrase()});
    name_guard(run, site, joined, ends.not_with_join, finding);
    add_ends(run, joined, finding);
    add_ends(run, ends.not_with_join, finding);
    if (!at_end && !is_bare_program) {
      finding.follows.push_back(
          fmt::format("HorovodStrategy joins all ranks before {}: {} {} zeros to the averages of "
                      "the others until they join, too",
                      call, joined.phrase(), joined.size() == 1 ? "gives" : "give"));
    }
    finding.follows.push_back(fmt::format(
        "the next all_gather or broadcast raises on {}; when their processes end, "
        "Horovod shuts down, and {} {}, too",
        ends.not_with_join.phrase(), joined.phrase(), joined.size() == 1 ? "raises" : "raise"));
    finding.fix = is_bare_program
                      ? std::vector<std::string>{"let no rank `join` before all ranks have made "
                                                 "their all_gathers and broadcasts"}
                      : fix_of_call(call);
    findings.push_back(std::move(finding));
  }
}

// The error of another rank has ended it: one defect.
bool tell_as_consequence(const HorovodEnds& ends, RankSet failed, std::vector<Finding>& findings) {
  const auto cause = std::ranges::find_if(findings, [&](const Finding& finding) {
    return finding.level == Level::error && finding.ranks.intersects(failed) &&
           !finding.ranks.intersects(ends.shut_down);
  });
  if (cause == findings.end()) {
    return false;
  }
  const bool is_one = ends.shut_down.size() == 1;
  cause->follows.push_back(fmt::format(
      "when that process ends, Horovod shuts down on all ranks: {} {} '{}'; the launcher ends all "
      "processes",
      ends.shut_down.phrase(), is_one ? "raises" : "raise", negotiation_errors::shut_down));
  take_bare(findings, ends.shut_down, negotiation_errors::shut_down);
  return true;
}

// Names that these ranks wait for, and ranks that have ended never handed over; those of the
// statement that raised first.
std::vector<Unmet> unmet_at_end(const OneRun& run, const HorovodEnds& ends) {
  std::vector<Unmet> unmet = unmet_of(run);
  std::erase_if(unmet, [&](const Unmet& each) {
    return !each.waiting.intersects(ends.shut_down) || !each.missing.intersects(ends.finished);
  });
  std::ranges::stable_sort(unmet, std::greater(), [&](const Unmet& each) {
    return std::ranges::any_of(each.waiting.ranks(), [&](int32_t rank) {
      return ends.shut_down.contains(rank) && end_site(run, rank) == each.site;
    });
  });
  return unmet.empty() ? unmet : alike(unmet);
}

// Ranks wait in a call that has no name of its own.
Unmet unnamed_at_end(const OneRun& run, const HorovodEnds& ends) {
  const auto [site, ranks] = *by_end_site(run, ends.shut_down).begin();
  return {site, description_at(run, site), ranks, ends.finished};
}

void tell_ended(const OneRun& run, const HorovodEnds& ends, std::vector<Finding>& findings) {
  const std::vector<Unmet> named = unmet_at_end(run, ends);
  const Unmet first = named.empty() ? unnamed_at_end(run, ends) : named.front();
  if (ends.finished.empty() || (named.empty() && !has_line(run, first.site))) {
    return;
  }
  RankSet waiting = ends.shut_down;
  const std::string never = named.empty()
                                ? fmt::format("{} never {} it", ends.finished.phrase(),
                                              ends.finished.size() == 1 ? "calls" : "call")
                                : never_text(first, named.size());
  Finding finding =
      finding_of("LS101", Level::error,
                 fmt::format("{} {} for {}, and {}: {}", waiting.phrase(),
                             waiting.size() == 1 ? "waits" : "wait",
                             named.empty() ? "all ranks in " + first.name : names_of(named),
                             waiting.size() == 1 ? "raises" : "raise", never));
  finding.ranks = waiting;
  finding.sites.push_back({first.site, SiteRole::subject,
                           named.empty() ? "on " + first.waiting.phrase() : "handed over here"});
  const auto guard = name_guard(run, first.site, first.waiting, ends.finished, finding);
  add_ends(run, waiting, finding);
  finding.did.push_back(
      {ends.finished, 0, "ended", last_operation(*run.result.journal, ends.finished.first()).site});
  finding.follows.push_back(
      fmt::format("Horovod shuts down on all ranks when {} {}: {} {} at once",
                  ends.finished.phrase(), ends.finished.size() == 1 ? "ends" : "end",
                  waiting.phrase(), waiting.size() == 1 ? "raises" : "raise"));
  finding.fix = named.empty() ? fix_of_call(first.name) : remedy_for_unmet(first, guard);
  take_bare(findings, waiting, negotiation_errors::shut_down);
  findings.push_back(std::move(finding));
}

}  // namespace

void tell_horovod_exceptions(const OneRun& run, std::vector<Finding>& findings) {
  if (run.result.hung || run.result.journal == nullptr || !goes_through_horovod(run)) {
    return;
  }
  const HorovodEnds ends = horovod_ends(run);
  for (const auto& [message, ranks] : ends.mismatch) {
    tell_mismatch(run, message, ranks, findings);
  }
  if (!ends.not_with_join.empty()) {
    tell_joined(run, ends, findings);
    return;
  }
  RankSet failed = ends.others;
  for (const auto& [message, ranks] : ends.mismatch) {
    failed.add(ranks);
  }
  if (ends.shut_down.empty() || tell_as_consequence(ends, failed, findings)) {
    return;
  }
  tell_ended(run, ends, findings);
}

}  // namespace lockstep::cli
