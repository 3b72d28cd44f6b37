#include "rehearsal/sweep/check_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>

#include "io/scenario/load/digest.hpp"

namespace lockstep::cli {

namespace {

constexpr size_t values_tried = 1'000;      // of each key
constexpr size_t combinations_tried = 100;  // of a value that is complained about
constexpr size_t most_errors = 20;

/// Loads cases and keeps what it learns.
class Checker {
 public:
  Checker(const CaseSource& source, const SweepCases& cases) : source_(source), cases_(cases) {}

  CheckedCases check() {
    load(1);
    for (size_t key = 0; key < cases_.keys().size(); ++key) {
      const std::vector<int64_t> first = cases_.first_with_each_value(key);
      for (size_t value = 0; value < std::min(first.size(), values_tried); ++value) {
        check_value(key, value, first[value]);
        if (checked_.diagnostics.size() >= most_errors) {
          return std::move(checked_);
        }
      }
    }
    return std::move(checked_);
  }

 private:
  LoadedScenarios load(int64_t number) {
    LoadedScenarios loaded = source_.load(cases_.settings_of(number));
    for (const std::string& file : loaded.files) {
      if (std::ranges::count(checked_.files, file) == 0) {
        checked_.files.push_back(file);
      }
    }
    return loaded;
  }

  void check_value(size_t key, size_t value, int64_t first) {
    const std::string blamed = "--set " + cases_.keys()[key];
    const auto blames = [&](const LoadedScenarios& loaded) {
      return std::ranges::any_of(loaded.diagnostics, [&](const Diagnostic& diagnostic) {
        return diagnostic.place.file == blamed;
      });
    };
    LoadedScenarios loaded = load(first);
    if (!blames(loaded)) {
      return;
    }
    for (const int64_t number : cases_.some_with(key, value, combinations_tried)) {
      if (!blames(load(number))) {
        return;
      }
    }
    add(loaded, blamed);
  }

  // As the user wrote it: by --vary.
  void add(const LoadedScenarios& loaded, const std::string& blamed) {
    const std::string option = cases_.is_grid() ? "--vary" : "--vary-file";
    const std::string& argument = loaded.sources.at(blamed);
    const std::string name = option + " " + argument;
    checked_.sources[name] = argument;
    for (Diagnostic diagnostic : loaded.diagnostics) {
      // An unknown key is one error, however many values it has.
      const bool is_known =
          std::ranges::count(checked_.diagnostics, diagnostic.message, &Diagnostic::message) > 0;
      if (diagnostic.place.file == blamed && !is_known) {
        diagnostic.place.file = name;
        for (size_t at = 0; (at = diagnostic.message.find("--set", at)) != std::string::npos;) {
          diagnostic.message.replace(at, 5, option);
        }
        checked_.diagnostics.push_back(std::move(diagnostic));
      }
    }
  }

  const CaseSource& source_;
  const SweepCases& cases_;
  CheckedCases checked_;
};

}  // namespace

CheckedCases check_cases(const CaseSource& source, const SweepCases& cases) {
  return Checker(source, cases).check();
}

std::string digest_of_files(const std::vector<std::string>& files) {
  constexpr size_t piece = size_t{1} << 20;
  uint64_t digest = 0;
  for (const std::string& file : files) {
    std::ifstream stream(file, std::ios::binary);
    std::string text(piece, '\0');
    while (stream.read(text.data(), static_cast<std::streamsize>(piece)) || stream.gcount() > 0) {
      digest = digest_with(digest,
                           std::string_view(text).substr(0, static_cast<size_t>(stream.gcount())));
    }
    if (stream.bad() || !stream.is_open()) {
      throw SweepError(fmt::format("{} cannot be read", file), "", ExitCode::bad_input);
    }
  }
  return digest_text(digest);
}

FileReader reading_once() {
  struct Known {
    std::mutex guard;
    std::map<std::string, std::variant<std::string, FileError>> files;
  };
  return [known = std::make_shared<Known>()](const std::string& path, size_t limit_bytes) {
    const std::lock_guard lock(known->guard);
    const auto found = known->files.find(path);
    if (found != known->files.end()) {
      return found->second;
    }
    return known->files.emplace(path, read_file_from_disk(path, limit_bytes)).first->second;
  };
}

}  // namespace lockstep::cli
