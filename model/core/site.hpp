#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace lockstep {

/// Names the place in user code, scenario or strategy that caused an operation. The id is a hash of
/// the site's key, so that two processes that never spoke name the same place alike.
struct SiteId {
  uint32_t value = 0;
  constexpr auto operator<=>(const SiteId&) const = default;
};
inline constexpr SiteId no_site{0};

/// FNV-1a of the key, never 0.
constexpr SiteId site_id(std::string_view key) {
  uint32_t hash = 2166136261u;
  for (const char letter : key) {
    hash = (hash ^ static_cast<uint8_t>(letter)) * 16777619u;
  }
  return SiteId{hash == 0 ? 1u : hash};
}

/// The site of all data loading, in every program, so that an observer of a port recognises it.
inline constexpr SiteId data_loading_site = site_id("data loading");

/// What a place has to do with `trainer.should_stop`.
enum class StopRole : uint8_t { none, sets, looks };

/// Description of a site. Sites of a scenario have a file and a line; sites of a strategy or of
/// the trainer only say what they do ("ddp: all_reduce of a bucket").
struct Site {
  std::string description;  ///< "all_gather", "ddp: broadcast of buffers", "Lightning, fit barrier"
  std::string file;         ///< scenario file, or empty
  int line = 0;             ///< 1-based, 0 = none
  int column = 0;           ///< 1-based, 0 = none
  std::string at;           ///< the user's own place ("model.py:41"), or empty
  std::string hook;         ///< the hook it stands in ("training_step"), or empty
  SiteId guard{};           ///< the `if` or `repeat` that directly encloses it, or none
  std::string condition;    ///< of an `if` or `repeat`: the text of its expression
  bool in_else = false;     ///< stands in the `else` of its guard
  /// What a call moves, as the user wrote it: "x", "mean(loss)"; of new_group the group's name.
  std::string data{};
  std::string part{};  ///< distinguishes the calls of one statement: "at the end of the epoch"
  int order = 0;       ///< of parts that one statement calls in this order, from 1; 0: none
  std::string logged_key{};     ///< whose value a reduction is of; empty: no logged key's
  bool answers_signal = false;  ///< a handler of SIGTERM, or what follows from it
  bool is_barrier = false;      ///< an all_reduce of one number stands for a barrier, as in c10d
  StopRole stop = StopRole::none;
  std::string batches{};  ///< of a loop over batches, which: "training"; empty: no such loop
  /// Where a rank hands a tensor over that meets those of its peers by name: that name.
  std::string met_by_name{};
};

/// The table from id to site. Filled before a run or by one rank; merged after it.
class Sites {
 public:
  /// Key: "file:line:column" for a scenario's statement, else the description; then the part.
  SiteId add(const Site& site);
  /// Null when unknown.
  const Site* find(SiteId id) const;
  void merge(const Sites& other);
  const std::map<SiteId, Site>& all() const { return sites_; }
  /// "scenario.yaml:17:15", or the description, or "site 0x1234" when unknown.
  std::string place(SiteId id) const;

 private:
  std::map<SiteId, Site> sites_;
};

}  // namespace lockstep
