#include "properties/diagnosis/shrink.hpp"

#include <algorithm>

namespace lockstep {

namespace {

// The candidates of each name, names in the order of first mention.
std::vector<std::vector<Setting>> by_name(std::span<const Setting> candidates) {
  std::vector<std::vector<Setting>> names;
  for (const Setting& candidate : candidates) {
    auto name = std::find_if(names.begin(), names.end(), [&candidate](const auto& known) {
      return known.front().name == candidate.name;
    });
    if (name == names.end()) {
      names.push_back({candidate});
    } else {
      name->push_back(candidate);
    }
  }
  return names;
}

class Search {
 public:
  Search(std::span<const Setting> candidates, const StillShows& still_shows, int64_t runs_max)
      : names_(by_name(candidates)),
        chosen_(names_.size()),
        still_shows_(still_shows),
        runs_max_(runs_max) {
    for (size_t name = 0; name < names_.size(); ++name) {
      chosen_[name] = names_[name].size();
    }
  }

  Shrunk run() {
    for (bool smaller = true; smaller && result_.finished;) {
      smaller = false;
      for (size_t name = 0; name < names_.size(); ++name) {
        smaller = improve(name) || smaller;
      }
    }
    result_.settings = settings();
    return result_;
  }

 private:
  // Tries the values before the chosen one.
  bool improve(size_t name) {
    const size_t before = chosen_[name];
    for (size_t value = 0; value < before; ++value) {
      if (result_.runs == runs_max_) {
        result_.finished = false;
        return false;
      }
      chosen_[name] = value;
      ++result_.runs;
      if (still_shows_(settings())) {
        return true;
      }
      chosen_[name] = before;
    }
    return false;
  }

  std::vector<Setting> settings() const {
    std::vector<Setting> list;
    for (size_t name = 0; name < names_.size(); ++name) {
      if (chosen_[name] < names_[name].size()) {
        list.push_back(names_[name][chosen_[name]]);
      }
    }
    return list;
  }

  std::vector<std::vector<Setting>> names_;
  std::vector<size_t> chosen_;  ///< by name; past the end: unchanged
  const StillShows& still_shows_;
  int64_t runs_max_;
  Shrunk result_;
};

}  // namespace

std::string Shrunk::text() const {
  std::string text;
  for (const Setting& setting : settings) {
    text += (text.empty() ? "--set " : " --set ") + setting.text();
  }
  return text;
}

Shrunk shrink(std::span<const Setting> candidates, const StillShows& still_shows,
              int64_t runs_max) {
  return Search(candidates, still_shows, runs_max).run();
}

bool same_defect(const Finding& left, const Finding& right) {
  return left.code == right.code && left.site() == right.site();
}

}  // namespace lockstep
