#include <fmt/format.h>

#include <algorithm>

#include "io/scenario/forms/section_forms.hpp"
#include "io/scenario/names/known_names.hpp"
#include "io/scenario/reader/scalar.hpp"
#include "io/scenario/sections/sections.hpp"

namespace lockstep {
namespace {

constexpr double most_samples = 1e15;

/// In a column, `nan` is a legal number: it says that a sample has none.
std::optional<Expression> read_column(Reader& reader, const Node& node, const KeyRow& row) {
  const auto nan_or = [&](const Node& item) -> std::optional<Expression> {
    if (item.kind == Node::Kind::scalar && !item.quoted && item.text == "nan") {
      return Expression::constant(Value(std::numeric_limits<double>::quiet_NaN()),
                                  reader.place(item));
    }
    return ExpressionForm::read(reader, item, row);
  };
  if (node.kind != Node::Kind::list) {
    return nan_or(node);
  }
  ExpressionNode list{ExpressionNode::Kind::list, reader.place(node)};
  std::string text = "[";
  for (const NodePtr& item : node.items) {
    const auto part = nan_or(*item);
    if (!part) {
      return std::nullopt;
    }
    list.parts.push_back(std::make_shared<const ExpressionNode>(part->root()));
    text += (text.size() > 1 ? ", " : "") + part->text();
  }
  return Expression(make_expression_node(std::move(list)), text + "]");
}

// Values know the sample, and the rank where each rank makes them for itself (a token mask).
bool knows_more_than_sample(Reader& reader, const Node& node, const Expression& expression) {
  for (const std::string& name : expression.names()) {
    const bool of_rank = std::ranges::count(names_of_ranks, name) != 0;
    if (name != "sample" && !of_rank) {
      reader.fail(node.mark, fmt::format("the values of a sample cannot depend on `{}`", name),
                  "write numbers, or an expression of `sample` and `rank`");
      return true;
    }
  }
  return false;
}

struct ValuesForm : FormWithoutWords {
  static constexpr std::string_view type = "`{csv: path}`, or map COLUMN: list or expr";
  static std::optional<ColumnValues> read(Reader& reader, const Node& node, const KeyRow& row) {
    if (node.kind != Node::Kind::map) {
      reader.fail_type(node, row.key, "a map", "write {csv: FILE} or {score: random()}");
      return std::nullopt;
    }
    ColumnValues values;
    values.place = reader.place(node);
    for (const Entry& entry : node.entries) {
      KeyRow one = row;
      one.key = entry.key;
      if (entry.value->kind == Node::Kind::null) {
        continue;
      }
      if (entry.key == "csv") {
        if (auto path = PathForm::read(reader, *entry.value, one)) {
          values.csv = {*path, reader.place(*entry.value)};
        }
        continue;
      }
      read_one_column(reader, entry, one, values);
    }
    if (values.csv && !values.columns.empty()) {
      reader.fail(node.mark, "`values` has both a CSV file and columns", "keep one of the two");
    }
    return values;
  }

  static void read_one_column(Reader& reader, const Entry& entry, const KeyRow& row,
                              ColumnValues& values) {
    Node name;
    name.kind = Node::Kind::scalar;
    name.text = entry.key;
    name.mark = entry.mark;
    if (!NameForm::read(reader, name, row)) {
      return;
    }
    if (is_known_name(entry.key)) {
      reader.fail(entry.mark,
                  fmt::format("no column can be named `{}`: the name has a different "
                              "meaning in programs",
                              entry.key),
                  "choose another name");
      return;
    }
    if (entry.value->kind == Node::Kind::list && entry.value->items.empty()) {
      reader.fail(entry.value->mark, fmt::format("the column `{}` has no values", entry.key),
                  "give one for each sample");
      return;
    }
    auto expression = read_column(reader, *entry.value, row);
    if (expression && knows_more_than_sample(reader, *entry.value, *expression)) {
      return;
    }
    if (expression) {
      values.columns.push_back({entry.key, std::move(*expression), reader.place(entry.mark)});
    }
  }
};

/// What the model or the loss gets of every sample.
struct SamplesForm : FormWithoutWords {
  static constexpr std::string_view type = "lists of numbers, or `{csv: path}`";
  static std::optional<TensorValues> read(Reader& reader, const Node& node, const KeyRow& row) {
    if (node.kind == Node::Kind::scalar) {
      reader.fail_type(node, row.key, "a list with one row for each sample",
                       "write [[1, 2], [3, 4]] or {csv: FILE}");
      return std::nullopt;
    }
    return read_tensor_values(reader, node, row);
  }
};

/// A number, or an expression of the rank: then ranks have batches of their own sizes.
Field<LoaderSpec> batch_size_field() {
  KeyRow row{"batch_size", "8",
             "the argument of the user's DataLoader; an expression of `rank` where ranks differ", 1,
             1e12};
  row.type = "int or expr";
  return {row, [](Reader& reader, const Node& node, const KeyRow& known, LoaderSpec& loader) {
            const bool number = node.kind != Node::Kind::scalar || looks_like_number(node.text);
            if (number) {
              fill<IntForm>(reader, node, known, loader.batch_size);
            } else {
              fill<ExpressionForm>(reader, node, known, loader.batch_size_of_rank);
            }
          }};
}

std::vector<LoaderSpec> read_loaders(Reader& reader, const Node& node, std::string_view stage) {
  std::vector<LoaderSpec> loaders;
  const auto read_one = [&](const Node& one) {
    KeyRow row;
    row.key = stage;
    if (auto loader = TableForm<LoaderSpec, loader_table>::read(reader, one, row)) {
      loaders.push_back(std::move(*loader));
    }
  };
  if (node.kind != Node::Kind::list) {
    read_one(node);
    return loaders;
  }
  for (const NodePtr& item : node.items) {
    read_one(*item);
  }
  return loaders;
}

}  // namespace

Table<LoaderSpec> loader_table() {
  return {
      "data",
      {
          field<&LoaderSpec::samples>(
              {"samples", "train 1024, others 256", "in the whole data set", 0, most_samples}),
          field<&LoaderSpec::tokens>(
              {"tokens", "", "instead of `samples`; divided by `seq_len`", 0, most_samples}),
          field<&LoaderSpec::batches>(
              {"batches", "from `samples`",
               "batches of *this rank*, for uneven loaders: `10 + (rank == 0)`; not together with "
               "`samples`"}),
          batch_size_field(),
          field<&LoaderSpec::shuffle>({"shuffle", "train true, others false", "as DataLoader"}),
          field<&LoaderSpec::drop_last>({"drop_last", "false", "as DataLoader"}),
          field<&LoaderSpec::pin_memory>({"pin_memory", "false", "as DataLoader"}),
          field<&LoaderSpec::persistent_workers>({"persistent_workers", "false", "as DataLoader"}),
          field<&LoaderSpec::num_workers>(
              {"num_workers", "0", "processes that load; 0: the rank's own thread does", 0, 4096}),
          field<&LoaderSpec::prefetch_factor>({"prefetch_factor", "2", "as DataLoader", 1, 4096}),
          field<&LoaderSpec::iterable>(
              {"iterable", "false",
               "an IterableDataset, without a sampler; `sampler: unrepeated` shards it"}),
          field<&LoaderSpec::sampler>(
              {"sampler", "auto", "auto: the sampler that Lightning inserts"}),
          field<&LoaderSpec::sampler_drop_last>(
              {"sampler_drop_last", "false",
               "of a DistributedSampler of your own: leaves samples out "
               "instead of repeating some"}),
          field<&LoaderSpec::set_epoch>(
              {"set_epoch", "true", "false: the script does not call it"}),
          field<&LoaderSpec::sample_time>({"sample_time", "0", "CPU work of one sample"}),
          field<&LoaderSpec::sample_size>(
              {"sample_size", "from the model", "host bytes of one sample"}),
          field<&LoaderSpec::inputs, SamplesForm>(
              {"inputs", "drawn from the seed",
               "what the model gets: a row for each sample, of the shape of the model's input"}),
          field<&LoaderSpec::targets, SamplesForm>(
              {"targets", "drawn from the seed",
               "what the loss compares with: a row for each sample; a class is a whole number"}),
          field<&LoaderSpec::values, ValuesForm>(
              {"values", "`{score: random(), target: random() < 0.5, loss: random()}`",
               "per-sample values, as columns of the batch; in the expr `sample` is the index"}),
      }};
}

std::optional<DataSpec> read_data(Reader& reader, const Node& node) {
  if (node.kind != Node::Kind::map) {
    reader.fail_type(node, "data", "a map", "");
    return std::nullopt;
  }
  DataSpec data;
  data.place = reader.place(node);
  Node common = node;
  common.entries.clear();
  const std::vector<std::pair<std::string_view, std::vector<LoaderSpec>*>> stages = {
      {"train", &data.train}, {"val", &data.val}, {"test", &data.test}, {"predict", &data.predict}};
  for (const Entry& entry : node.entries) {
    const auto stage = std::find_if(stages.begin(), stages.end(), [&](const auto& candidate) {
      return candidate.first == entry.key;
    });
    if (stage == stages.end()) {
      common.entries.push_back(entry);
    } else if (entry.value->kind != Node::Kind::null) {
      *stage->second = read_loaders(reader, *entry.value, stage->first);
    }
  }
  // An unknown key may be a misspelled stage, so all legal keys are offered.
  Table<LoaderSpec> table = loader_table();
  const std::vector<std::string_view> loader_keys = keys_of(table);
  std::erase_if(common.entries, [&](const Entry& entry) {
    if (std::find(loader_keys.begin(), loader_keys.end(), entry.key) != loader_keys.end()) {
      return false;
    }
    std::vector<std::string_view> legal = {"train", "val", "test", "predict"};
    legal.insert(legal.end(), loader_keys.begin(), loader_keys.end());
    fail_unknown_key(reader, entry, "data", legal);
    return true;
  });
  data.common.place = data.place;
  read_table(reader, common, table, data.common);
  return data;
}

}  // namespace lockstep
