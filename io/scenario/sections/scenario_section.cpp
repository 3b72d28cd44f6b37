#include <fmt/format.h>

#include <algorithm>

#include "io/scenario/forms/section_forms.hpp"
#include "io/scenario/names/known_names.hpp"
#include "io/scenario/sections/sections.hpp"
#include "model/cluster/software.hpp"

namespace lockstep {
namespace {

const std::vector<std::string_view>& library_names() {
  static const std::vector<std::string_view> names = {
      "lightning", "torch",   "torchmetrics", "nccl",      "gloo",
      "bagua",     "horovod", "fairscale",    "deepspeed", "kernels"};
  return names;
}

bool is_version(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos &&
         text.front() != '.' && text.back() != '.' && text.find("..") == std::string_view::npos;
}

struct VersionsForm : FormWithoutWords {
  static constexpr std::string_view type = "map LIBRARY: text";
  static std::optional<std::vector<LibraryVersion>> read(Reader& reader, const Node& node,
                                                         const KeyRow& row) {
    if (node.kind != Node::Kind::map) {
      reader.fail_type(node, row.key, "a map", "write {lightning: \"2.6\"}");
      return std::nullopt;
    }
    std::vector<LibraryVersion> versions;
    for (const Entry& entry : node.entries) {
      const auto& legal = library_names();
      if (std::find(legal.begin(), legal.end(), entry.key) == legal.end()) {
        fail_unknown_key(reader, entry, "versions", legal);
        continue;
      }
      if (entry.value->kind == Node::Kind::null) {
        continue;
      }
      if (entry.key == "kernels" && entry.value->kind == Node::Kind::scalar) {
        if (kernel_choice(entry.value->text)) {
          versions.push_back({entry.key, entry.value->text, reader.place(*entry.value)});
        } else {
          reader.fail(
              entry.value->mark, fmt::format("unknown software `{}`", entry.value->text),
              fmt::format("expected one of: {}", fmt::join(software_profile_names(), ", ")));
        }
        continue;
      }
      if (entry.value->kind != Node::Kind::scalar || !is_version(entry.value->text)) {
        reader.fail_type(*entry.value, entry.key, "a version", "write \"2.6\"");
        continue;
      }
      versions.push_back({entry.key, entry.value->text, reader.place(*entry.value)});
    }
    return versions;
  }
};

struct EnvironmentForm : FormWithoutWords {
  static constexpr std::string_view type = "map NAME: text";
  static std::optional<std::vector<EnvironmentVariable>> read(Reader& reader, const Node& node,
                                                              const KeyRow& row) {
    if (node.kind != Node::Kind::map) {
      reader.fail_type(node, row.key, "a map", "write {NCCL_ALGO: Ring}");
      return std::nullopt;
    }
    std::vector<EnvironmentVariable> variables;
    for (const Entry& entry : node.entries) {
      if (entry.value->kind == Node::Kind::null) {
        continue;
      }
      if (entry.value->kind != Node::Kind::scalar) {
        reader.fail_type(*entry.value, entry.key, "a text", "quote a text that holds braces");
        continue;
      }
      variables.push_back({entry.key, entry.value->text, parts_of(reader, *entry.value),
                           text_place(reader, *entry.value)});
    }
    return variables;
  }

  /// Splits at `{expr}`.
  static std::vector<EnvironmentPart> parts_of(Reader& reader, const Node& node) {
    std::vector<EnvironmentPart> parts;
    const std::string& text = node.text;
    for (size_t position = 0; position < text.size();) {
      const size_t open = std::min(text.find('{', position), text.size());
      if (open > position) {
        parts.push_back({text.substr(position, open - position), std::nullopt});
      }
      if (open == text.size()) {
        break;
      }
      const size_t close = text.find('}', open);
      if (close == std::string::npos) {
        reader.fail(node.mark, "a brace of `{expr}` is not closed", "write \"{rank}\"");
        break;
      }
      Node inside = node;
      inside.quoted = false;
      inside.text = text.substr(open + 1, close - open - 1);
      inside.mark.column += static_cast<int>(open) + 1 + (node.quoted ? 1 : 0);
      if (auto expression = ExpressionForm::read(reader, inside, KeyRow{"env", "", ""})) {
        parts.push_back({"", std::move(*expression)});
      }
      position = close + 1;
    }
    return parts;
  }
};

struct MetricsForm : FormWithoutWords {
  static constexpr std::string_view type = "map NAME: object";
  static std::optional<std::vector<NamedMetric>> read(Reader& reader, const Node& node,
                                                      const KeyRow& row) {
    if (node.kind != Node::Kind::map) {
      reader.fail_type(node, row.key, "a map", "write {val_f1: BinaryF1Score}");
      return std::nullopt;
    }
    std::vector<NamedMetric> metrics;
    for (const Entry& entry : node.entries) {
      Node name;
      name.kind = Node::Kind::scalar;
      name.text = entry.key;
      name.mark = entry.mark;
      if (entry.value->kind == Node::Kind::null || !NameForm::read(reader, name, row)) {
        continue;
      }
      if (is_known_name(entry.key)) {
        reader.fail(
            entry.mark,
            fmt::format("no metric can be named `{}`: the name has a different meaning in programs",
                        entry.key),
            "choose another name");
        continue;
      }
      if (auto metric = read_object(reader, *entry.value, entry.key, ObjectRole::metric)) {
        metrics.push_back({entry.key, std::move(*metric)});
      }
    }
    return metrics;
  }
};

/// Sections that have a reader of their own.
template <class Section, std::optional<Section> (*read_section)(Reader&, const Node&)>
struct SectionForm : FormWithoutWords {
  static constexpr std::string_view type = "map";
  static std::optional<Section> read(Reader& reader, const Node& node, const KeyRow&) {
    return read_section(reader, node);
  }
};
template <class Item, std::vector<Item> (*read_items)(Reader&, const Node&)>
struct ItemsForm : FormWithoutWords {
  static constexpr std::string_view type = "list";
  static std::optional<std::vector<Item>> read(Reader& reader, const Node& node, const KeyRow&) {
    return read_items(reader, node);
  }
};

struct NumericsForm : FormWithoutWords {
  static constexpr std::string_view type = "word";
  static std::vector<std::string_view> words() { return {"auto", "true", "false"}; }
  static std::optional<std::string> read(Reader& reader, const Node& node, const KeyRow& row) {
    const std::optional<size_t> index = read_word(reader, node, row, words());
    return index ? std::optional(std::string(words()[*index])) : std::nullopt;
  }
};

struct IgnoreForm : FormWithoutWords {
  static constexpr std::string_view type = "map CODE: reason";
  static std::optional<std::vector<VerifySpec::Ignored>> read(Reader& reader, const Node& node,
                                                              const KeyRow& row) {
    if (node.kind != Node::Kind::map) {
      reader.fail_type(node, row.key, "a map CODE: reason", "write {LS402: slow disk, known}");
      return std::nullopt;
    }
    std::vector<VerifySpec::Ignored> ignored;
    for (const Entry& entry : node.entries) {
      constexpr size_t code_length = 5;
      if (!entry.key.starts_with("LS") || entry.key.size() != code_length) {
        reader.fail(entry.mark, fmt::format("`{}` is not the code of a finding", entry.key),
                    "write LS402: reason");
        continue;
      }
      check_code(reader, entry.key, reader.place(entry.mark));
      if (entry.value->kind != Node::Kind::scalar || entry.value->text.empty()) {
        reader.fail_type(*entry.value, entry.key, "a reason", "say why it is ignored");
        continue;
      }
      ignored.push_back({entry.key, entry.value->text, reader.place(entry.mark)});
    }
    return ignored;
  }
};

}  // namespace

Table<VerifySpec> verify_table() {
  return {
      "verify",
      {
          field<&VerifySpec::world_sizes>(
              {"world_sizes", "the scenario's",
               "numbers of ranks to explore beside its own; the cluster grows by nodes", 1,
               static_cast<double>(maximum_ranks)}),
          field<&VerifySpec::max_schedules>(
              {"max_schedules", "10_000", "limit; beyond it the answer is undecided", 1, 1e15}),
          field<&VerifySpec::numerics, NumericsForm>(
              {"numerics", "auto",
               "auto: on when parameters fit in 64 MiB and the arithmetic takes seconds"}),
          field<&VerifySpec::single_device>({"single_device", "true", "compare with one device"}),
          field<&VerifySpec::all_steps>({"all_steps", "false",
                                         "true: simulate every step, also those that repeat "
                                         "earlier ones exactly, and compute the values of all"}),
          field<&VerifySpec::all_ranks>(
              {"all_ranks", "false",
               "true: simulate every rank, also those that do exactly what others do"}),
          field<&VerifySpec::ignore, IgnoreForm>(
              {"ignore", "{}", "still printed, but not a failure"}),
      }};
}

Table<Scenario> scenario_table() {
  return {
      "scenario",
      {
          field<&Scenario::version>({"version", "required", "1", 1, 1}),
          field<&Scenario::versions, VersionsForm>(
              {"versions", "newest versions that support the scenario; printed",
               "texts such as `\"1.6\"`"}),
          field<&Scenario::seed>(
              {"seed_everything", "0", "the seed of data, values and tie-breaking", 0}),
          field<&Scenario::env, EnvironmentForm>(
              {"env", "{}", "environment of every rank; a value may hold `{expr}`"}),
          field<&Scenario::launcher, ObjectForm<ObjectRole::launcher>>(
              {"launcher", "lightning", "what starts the processes"}),
          field<&Scenario::cluster, TableForm<ClusterSpec, cluster_table>>(
              in_table({"cluster", "one `dgx-h100` per node, reported in `basis`", "the machine"},
                       "cluster")),
          field<&Scenario::process_group, TableForm<ProcessGroupSpec, process_group_table>>(
              in_table({"process_group", "from the accelerator", "communication library"},
                       "process_group")),
          field<&Scenario::model, SectionForm<ModelSpec, read_model>>(
              in_table({"model", "a two-layer perceptron, reported in `basis`", "what is trained"},
                       "model")),
          field<&Scenario::data, SectionForm<DataSpec, read_data>>(
              in_table({"data", "as the table of loaders says", "on what"}, "data")),
          field<&Scenario::optimizers, ObjectsForm<ObjectRole::optimizer>>(
              {"optimizer", "`{SGD: {lr: 0.1}}`",
               "extra arguments: `name`, `module` (whose parameters), `set_to_none`, `scaling`, "
               "`base_lr`, `base_batch_size`"}),
          field<&Scenario::schedulers, ObjectsForm<ObjectRole::lr_scheduler>>(
              {"lr_scheduler", "",
               "extra arguments: `optimizer` (name), `monitor`, `interval`, `frequency`, "
               "`strict`"}),
          field<&Scenario::trainer, TableForm<TrainerSpec, trainer_table>>(
              in_table({"trainer", "{}", "arguments of `Trainer`, unchanged"}, "trainer")),
          field<&Scenario::metrics, MetricsForm>(
              {"metrics", "{}", "TorchMetrics classes: `{val_f1: BinaryF1Score}`"}),
          field<&Scenario::program, SectionForm<ProgramSpec, read_program>>(
              in_table({"program", "what Lightning does", "map HOOK: statements"}, "program")),
          field<&Scenario::faults, ItemsForm<FaultSpec, read_faults>>(
              {"faults", "[]", "faults to inject"}),
          field<&Scenario::verify, TableForm<VerifySpec, verify_table>>(
              in_table({"verify", "as its table says", "what to explore"}, "verify")),
          field<&Scenario::expectations, ItemsForm<Expectation, read_expectations>>(
              {"expect", "[]", "expected findings and results"}),
      }};
}

}  // namespace lockstep
