#include "io/scenario/load/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>

#include "io/scenario/expectations/expected_place.hpp"
#include "io/scenario/load/case_bases.hpp"
#include "io/scenario/load/config_files.hpp"
#include "io/scenario/load/digest.hpp"
#include "io/scenario/load/host_file.hpp"
#include "io/scenario/load/initial_files.hpp"
#include "io/scenario/load/merge.hpp"
#include "io/scenario/names/spelling.hpp"
#include "io/scenario/reader/scalar.hpp"
#include "io/scenario/sections/sections.hpp"
#include "io/table/csv_table.hpp"
#include "model/core/random.hpp"

namespace lockstep {
namespace {

constexpr size_t most_files = 64;
constexpr size_t most_cases = 1000;
/// Values of the file times cases: each case is read as a scenario of its own.
constexpr int64_t most_values_read = 20'000'000;
constexpr size_t most_errors = 200;

/// One load: the files read so far and what is wrong with them.
class Load {
 public:
  Load(const LoadOptions& options, const FileReader& read_file)
      : options_(options), read_file_(read_file), reader_(files_, loaded_.diagnostics) {}

  LoadedScenarios run(const std::string& path) {
    path_ = path;
    const NodePtr root = read_with_includes(path, nullptr);
    if (root) {
      read_cases(root);
    }
    tidy_diagnostics();
    if (!loaded_.ok()) {
      loaded_.scenarios.clear();
    }
    return std::move(loaded_);
  }

 private:
  struct Blame {
    Mark mark;  ///< of the include that asked for the file
  };

  void fail_file(const std::string& name, const Blame* blame, std::string message,
                 std::string remedy = {}) {
    if (blame != nullptr) {
      reader_.fail(blame->mark, fmt::format("`{}` cannot be included: {}", name, message),
                   "paths are relative to the file that names them");
      return;
    }
    loaded_.diagnostics.push_back({{name, 0, 0}, 1, std::move(message), std::move(remedy)});
  }

  NodePtr read_file(const std::string& name, const Blame* blame) {
    if (files_.size() >= most_files) {
      fail_file(name, blame, fmt::format("a scenario has more than {} files", most_files));
      return nullptr;
    }
    loaded_.files.push_back(name);
    std::variant<std::string, FileError> read = read_file_(name, DocumentLimits().bytes);
    if (const auto* error = std::get_if<FileError>(&read)) {
      fail_file(name, blame, error->message);
      return nullptr;
    }
    std::string text = std::get<std::string>(std::move(read));
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (text.starts_with(byte_order_mark)) {
      text.erase(0, byte_order_mark.size());
    }
    return parse(name, std::move(text));
  }

  NodePtr parse(const std::string& name, std::string text) {
    const auto file = static_cast<uint32_t>(files_.size());
    files_.push_back(name);
    const std::string& kept = loaded_.sources[name] = std::move(text);
    return parse_document(kept, name, file, loaded_.diagnostics);
  }

  /// The file merged over what it includes; null when it is no map.
  NodePtr read_with_includes(const std::string& name, const Blame* blame) {
    const std::string normal = std::filesystem::path(name).lexically_normal().string();
    if (std::find(including_.begin(), including_.end(), normal) != including_.end()) {
      fail_file(name, blame, "it includes itself, directly or through other files");
      return nullptr;
    }
    const NodePtr root = read_file(name, blame);
    if (!root || root->faulty) {
      return nullptr;
    }
    if (root->kind != Node::Kind::map) {
      reader_.fail(root->mark, fmt::format("a scenario must be a map, not {}", kind_name(*root)),
                   "begin with `version: 1`");
      return nullptr;
    }
    including_.push_back(normal);
    NodePtr merged;
    if (const Entry* include = root->find("include")) {
      merged = read_included(*include->value, std::filesystem::path(name).parent_path());
    }
    including_.pop_back();
    const NodePtr own = without(root, {"include"});
    return merged ? merge(merged, own, "scenario") : own;
  }

  NodePtr read_included(const Node& include, const std::filesystem::path& folder) {
    NodePtr merged;
    const auto add = [&](const Node& one) {
      if (one.kind != Node::Kind::scalar || one.text.empty()) {
        reader_.fail_type(one, "include", "a path or a list of paths");
        return;
      }
      const Blame blame{one.mark};
      if (const NodePtr next = read_with_includes((folder / one.text).string(), &blame)) {
        merged = merged ? merge(merged, next, "scenario") : next;
      }
    };
    if (include.kind == Node::Kind::list) {
      for (const NodePtr& item : include.items) {
        add(*item);
      }
    } else if (include.kind != Node::Kind::null) {
      add(include);
    }
    return merged;
  }

  void read_cases(const NodePtr& root) {
    const NodePtr sets = read_sets();
    const Entry* cases = root->find("cases");
    const NodePtr base = without(root, {"cases"});
    if (cases == nullptr || cases->value->kind == Node::Kind::null) {
      if (options_.scenario_case) {
        fail_file(path_, nullptr,
                  fmt::format("the file has no cases, and so none `{}`", *options_.scenario_case),
                  fmt::format("name the file alone: {}", path_));
        return;
      }
      read_one(base, sets, "");
      return;
    }
    if (cases->value->kind != Node::Kind::map || cases->value->entries.empty()) {
      reader_.fail_type(*cases->value, "cases", "a map NAME: scenario",
                        "write {small: {trainer: {devices: 2}}}");
      return;
    }
    const size_t count = cases->value->entries.size();
    if (count > most_cases || static_cast<int64_t>(count) * base->size > most_values_read) {
      reader_.fail(cases->mark, fmt::format("{} cases of a file of this size are too many", count),
                   fmt::format("a file has at most {} cases; split it", most_cases));
      return;
    }
    for (const Entry& entry : cases->value->entries) {
      case_names_.push_back(entry.key);
    }
    bool any = false;
    CaseBases bases(reader_, base, *cases->value);
    for (const Entry& entry : cases->value->entries) {
      if (!options_.scenario_case || *options_.scenario_case == entry.key) {
        any = true;
        if (const NodePtr merged = bases.merged(entry)) {
          read_one(merged, sets, entry.key);
        }
      }
    }
    if (!any) {
      const std::vector<std::string_view> legal(case_names_.begin(), case_names_.end());
      reader_.fail(cases->mark, fmt::format("the file has no case `{}`", *options_.scenario_case),
                   spelling_remedy(*options_.scenario_case, legal));
    }
  }

  void read_one(const NodePtr& merged, const NodePtr& sets, const std::string& name) {
    const NodePtr root = sets ? merge(merged, sets, "scenario") : merged;
    Scenario scenario;
    scenario.file = path_;
    scenario.name = name;
    scenario.digest = digest_of_run(*root);
    read_table(reader_, *root, scenario_table(), scenario);
    read_values(scenario);
    initial_files_.read(scenario, std::filesystem::path(path_).parent_path());
    HostFile(reader_, read_file_, loaded_)
        .read(scenario, std::filesystem::path(path_).parent_path());
    ConfigFiles(reader_, read_file_, loaded_)
        .read(scenario, std::filesystem::path(path_).parent_path());
    const Entry* version = root->find("version");
    if (version == nullptr ||
        (version->value->kind == Node::Kind::null && !version->value->faulty)) {
      reader_.fail_at({path_, 1, 1}, "`version` is missing",
                      "write `version: 1` at the top of the file");
    }
    find_expected_places(reader_, *root, scenario);
    check_scenario(reader_, scenario, case_names_);
    loaded_.scenarios.push_back(std::move(scenario));
  }

  // The rows of a CSV file are its samples, where the loader does not say otherwise.
  void read_values(Scenario& scenario) {
    if (!scenario.data) {
      return;
    }
    const auto read = [&](LoaderSpec& loader) {
      if (!loader.values || !loader.values->csv || !loader.values->columns.empty()) {
        return;
      }
      const Placed<std::string>& csv = *loader.values->csv;
      const std::string name =
          (std::filesystem::path(path_).parent_path() / csv.value).lexically_normal().string();
      const CsvTable& file = file_of_values(name, csv.place);
      loader.values->table = file.table;
      if (!file.table) {
        return;
      }
      scenario.digest = random_key(scenario.digest, file.digest);
      const int64_t rows = loader.values->table->rows();
      if (!loader.samples && !loader.tokens && !loader.batches) {
        loader.samples = {rows, csv.place};
      } else if (loader.samples && loader.samples->value > rows) {
        reader_.fail_at(loader.samples->place,
                        fmt::format("`samples` is {}, and {} has {} rows", loader.samples->value,
                                    csv.value, rows),
                        "leave `samples` out: the file says how many there are");
      }
    };
    read(scenario.data->common);
    for (auto* stage : {&scenario.data->train, &scenario.data->val, &scenario.data->test,
                        &scenario.data->predict}) {
      std::for_each(stage->begin(), stage->end(), read);
    }
  }

  // Cases that name the same file share what it holds.
  const CsvTable& file_of_values(const std::string& name, const SourcePlace& place) {
    const auto [known, is_new] = files_of_values_.try_emplace(name);
    CsvTable& file = known->second;
    if (!is_new) {
      return file;
    }
    loaded_.files.push_back(name);
    file = read_csv(name);
    for (Diagnostic& diagnostic : file.diagnostics) {
      if (diagnostic.place.line == 0) {
        reader_.fail_at(place, fmt::format("{}: {}", name, diagnostic.message), diagnostic.remedy);
      } else {
        loaded_.diagnostics.push_back(std::move(diagnostic));
      }
    }
    loaded_.sources.merge(file.lines);
    return file;
  }

  /// All `--set` arguments as one tree.
  NodePtr read_sets() {
    NodePtr merged;
    for (const std::string& argument : options_.set) {
      if (const NodePtr tree = read_set(argument)) {
        merged = merged ? merge(merged, tree, "scenario") : tree;
      }
    }
    return merged;
  }

  NodePtr read_set(const std::string& argument) {
    const size_t equals = argument.find('=');
    const auto option = options_.option_of_key.find(argument.substr(0, equals));
    const bool is_set = option == options_.option_of_key.end();
    const std::string name =
        is_set ? fmt::format("--set {}", argument.substr(0, equals)) : option->second;
    const auto refuse = [&](std::string message, std::string remedy) -> NodePtr {
      loaded_.sources[name] = argument;
      loaded_.diagnostics.push_back(
          {{name, 1, 1}, static_cast<int>(argument.size()), std::move(message), std::move(remedy)});
      return nullptr;
    };
    if (equals == std::string::npos || equals == 0 || equals + 1 == argument.size()) {
      return refuse(fmt::format("`--set {}` has no {}", argument, equals == 0 ? "key" : "value"),
                    "write --set trainer.devices=8, or =null for the default");
    }
    // Blanks in place of the key keep the columns of the argument.
    const NodePtr value = parse(name, std::string(equals + 1, ' ') + argument.substr(equals + 1));
    loaded_.sources[name] =
        is_set ? argument
               : fmt::format("{:<{}}{}", option->second, equals + 1, argument.substr(equals + 1));
    if (!value) {
      return nullptr;
    }
    const std::string_view key = std::string_view(argument).substr(0, equals);
    if (key.starts_with("program.") && std::ranges::count(key, '.') > 1) {
      return refuse(
          fmt::format("`--set {}` names a statement, but a list is changed as a whole", key),
          "write the other program as a case under `cases`, or set the whole list");
    }
    const auto file = static_cast<uint32_t>(files_.size() - 1);
    NodePtr tree = value;
    size_t end = equals;
    while (true) {
      const size_t dot = argument.rfind('.', end == 0 ? 0 : end - 1);
      const size_t begin = dot == std::string::npos || dot >= end ? 0 : dot + 1;
      if (begin == end) {
        return refuse(fmt::format("`--set {}` has an empty key", argument.substr(0, equals)), "");
      }
      const Mark mark{file, 1, static_cast<int>(begin) + 1, static_cast<int>(end - begin)};
      auto map = std::make_shared<Node>();
      map->kind = Node::Kind::map;
      map->mark = mark;
      map->entries.push_back({argument.substr(begin, end - begin), mark, tree});
      tree = std::move(map);
      if (begin == 0) {
        break;
      }
      end = begin - 1;
    }
    const std::string& section = tree->entries.front().key;
    if (section == "cases" || section == "include" || section == "version") {
      return refuse(fmt::format("`--set` cannot change `{}`", section), "change the file");
    }
    return tree;
  }

  /// By file and place; cases repeat the complaints about what they share.
  void tidy_diagnostics() {
    auto& all = loaded_.diagnostics;
    const auto order = [&](const Diagnostic& diagnostic) {
      const auto file = std::find(files_.begin(), files_.end(), diagnostic.place.file);
      return std::make_tuple(file - files_.begin(), diagnostic.place.line, diagnostic.place.column);
    };
    std::stable_sort(all.begin(), all.end(),
                     [&](const Diagnostic& a, const Diagnostic& b) { return order(a) < order(b); });
    std::set<std::tuple<std::string, int, int, std::string>> seen;
    std::erase_if(all, [&](const Diagnostic& diagnostic) {
      return !seen.emplace(diagnostic.place.file, diagnostic.place.line, diagnostic.place.column,
                           diagnostic.message)
                  .second;
    });
    if (all.size() > most_errors) {
      const size_t more = all.size() - most_errors;
      all.resize(most_errors);
      all.push_back({{path_, 0, 0}, 1, fmt::format("and {} more errors", more), ""});
    }
  }

  const LoadOptions& options_;
  const FileReader& read_file_;
  LoadedScenarios loaded_;
  std::vector<std::string> files_;
  Reader reader_;
  std::string path_;
  std::vector<std::string> including_;
  std::vector<std::string> case_names_;
  std::map<std::string, CsvTable> files_of_values_;
  InitialFiles initial_files_{reader_, read_file_, loaded_};
};

}  // namespace

LoadedScenarios load_scenario_file(const std::string& path, const LoadOptions& options,
                                   const FileReader& read_file) {
  return Load(options, read_file).run(path);
}

LoadedScenarios load_scenario_file(const std::string& path, const LoadOptions& options) {
  return load_scenario_file(path, options, read_file_from_disk);
}

}  // namespace lockstep
