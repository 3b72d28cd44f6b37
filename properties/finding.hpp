#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/core/site.hpp"
#include "properties/rank_set.hpp"

namespace lockstep {

/// error: hangs, raises, or computes a wrong value. warning: slow, risky, or depends on timing.
enum class Level : uint8_t { error, warning, note };
std::string_view name_of(Level level);

/// The role of a site in a finding.
enum class SiteRole : uint8_t {
  subject,    ///< the statement that the finding is about
  guard,      ///< the `if` or `repeat` that separated the ranks
  other,      ///< what the other ranks did instead
  writer,     ///< wrote the data in question
  exception,  ///< where a rank ended
  cause,      ///< a statement or key of the scenario that explains the difference
};
std::string_view name_of(SiteRole role);

struct FindingSite {
  SiteId site{};
  SiteRole role = SiteRole::subject;
  std::string label;  ///< under the mark: "call 9 of group world", "true on rank 0, false on .."
};

/// The action of one set of ranks at the place in question.
struct RankAction {
  RankSet ranks;
  int64_t call = 0;       ///< of the finding's group, from 1; 0 = makes no such call
  std::string operation;  ///< "all_gather fp32 [1280]", "ends", "raised 'no such file'"
  SiteId site{};
};

/// What a finding is about beyond its code, for whoever treats some of them apart.
enum class FindingTopic : uint8_t {
  other,
  disagreement,  ///< ranks decide apart, and act alike
  kept_list,     ///< a list that nothing has emptied: Finding::name
  assertion,     ///< of the user's program
  not_modelled,  ///< raised in place of what would run in the user's program
};

/// One way that ranks took, or one value that they had.
struct Way {
  RankSet ranks;
  std::string value;  ///< "true", "3 times", "0.25"
};

/// The branch or value that separated the ranks.
struct Why {
  std::string text;  ///< a sentence, empty when nothing is known
  SiteId site{};     ///< of the decision, or none
  std::vector<Way> ways;
};

/// One defect: verdict, place, cause, consequence and remedy. Plain data: rendering is elsewhere.
struct Finding {
  std::string code;  ///< "LS101"
  Level level = Level::error;
  FindingTopic topic = FindingTopic::other;
  std::string name{};  ///< in the user's program, of what it is about; empty: it needs none
  std::string title;
  std::vector<FindingSite> sites;  ///< the subject first
  RankSet ranks;                   ///< those who suffer or differ: the title's
  std::string group;               ///< "world", "ranks 0-3", or empty
  int64_t call = 0;                ///< of that group, from 1; 0 = not about a call
  std::vector<RankAction> did;
  std::string when;
  Why why;
  std::vector<std::string> follows;
  std::string smallest;  ///< settings that show the same with less; filled in by whoever shrank it
  std::vector<std::string> fix;
  /// `fix` as lines of a LightningModule or script; empty: it does not depend on the language.
  std::vector<std::string> python;
  std::string more;  ///< "lockstep explain LS101"
  /// The last statement or key of the scenario that explains it, for annotations; none: not known.
  SiteId place{};
  /// Codes of its consequences, which have no finding of their own: one defect, one finding.
  std::vector<std::string> also;

  /// The subject's site, or none.
  SiteId site() const { return sites.empty() ? no_site : sites.front().site; }
};

/// A finding of this code at this level, with the line that says where to read more.
Finding finding_of(std::string code, Level level, std::string title);

/// Errors first, then by code, call, ranks, site and title: the same order whatever found them.
void sort_findings(std::vector<Finding>& findings);

/// "0.25 ms", "3.2 s", "10 min": for sentences, four significant digits at most.
std::string time_text(int64_t picoseconds);
/// "512 B", "5.8 GiB".
std::string bytes_text(int64_t bytes);
/// "1 time", "3 times".
std::string times_text(int64_t count);

}  // namespace lockstep
