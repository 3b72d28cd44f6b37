#include "io/scenario/forms/format.hpp"

#include <fmt/format.h>

#include <cmath>

#include "io/expression/quantity.hpp"
#include "io/scenario/forms/plain.hpp"
#include "io/scenario/names/spelling.hpp"
#include "io/scenario/reader/scalar.hpp"

namespace lockstep {
namespace {

/// The text of a scalar that must not be quoted, or nothing.
std::optional<std::string_view> plain_text(Reader& reader, const Node& node, const KeyRow& row,
                                           std::string_view wanted) {
  if (node.kind != Node::Kind::scalar) {
    reader.fail_type(node, row.key, wanted);
    return std::nullopt;
  }
  if (node.quoted) {
    reader.fail_type(node, row.key, wanted,
                     fmt::format("remove the quotes around `{}`", node.text));
    return std::nullopt;
  }
  return node.text;
}

/// The text of a quantity, which JSON has to quote.
std::optional<std::string_view> quantity_text(Reader& reader, const Node& node, const KeyRow& row,
                                              std::string_view wanted) {
  if (node.kind != Node::Kind::scalar) {
    reader.fail_type(node, row.key, wanted);
    return std::nullopt;
  }
  return node.text;
}

template <class T>
std::optional<T> checked(Reader& reader, const Node& node, const KeyRow& row,
                         const std::variant<T, ScalarError>& parsed) {
  if (const auto* error = std::get_if<ScalarError>(&parsed)) {
    reader.fail(node.mark, fmt::format("`{}` {}", row.key, error->message), error->remedy);
    return std::nullopt;
  }
  return std::get<T>(parsed);
}

template <class T>
std::optional<T> quantity(Reader& reader, const Node& node, const KeyRow& row,
                          std::string_view wanted,
                          std::variant<T, QuantityError> (*parse)(std::string_view)) {
  const auto text = quantity_text(reader, node, row, wanted);
  if (!text) {
    return std::nullopt;
  }
  const std::variant<T, QuantityError> parsed = parse(*text);
  if (const auto* error = std::get_if<QuantityError>(&parsed)) {
    reader.fail(node.mark, fmt::format("`{}`: {}", row.key, error->message), error->remedy);
    return std::nullopt;
  }
  return std::get<T>(parsed);
}

/// `WORD N`, or nothing. Complains about the number only.
std::optional<int64_t> number_after(Reader& reader, const Node& node, const KeyRow& row,
                                    std::string_view word, bool& matched) {
  const std::string_view text = node.text;
  matched = text.starts_with(word) && text.size() > word.size() && text[word.size()] == ' ';
  if (!matched) {
    return std::nullopt;
  }
  const auto parsed = parse_int(text.substr(word.size() + 1));
  const auto value = checked<int64_t>(reader, node, row, parsed);
  if (value && *value < 0) {
    reader.fail(node.mark, fmt::format("`{}`: {} {} is negative", row.key, word, *value),
                "numbers count from 0");
    return std::nullopt;
  }
  return value;
}

}  // namespace

bool check_range(Reader& reader, const Node& node, const KeyRow& row, double value) {
  if (value >= row.minimum && value <= row.maximum) {
    return true;
  }
  if (row.minimum == row.maximum) {
    reader.fail(node.mark, fmt::format("`{}` is {}, not {}", row.key, row.minimum, node.text),
                fmt::format("write `{}: {}`: the only version so far", row.key, row.minimum));
    return false;
  }
  const bool below = !(value >= row.minimum);
  const bool bounded = row.maximum < std::numeric_limits<double>::infinity();
  reader.fail(node.mark,
              fmt::format("`{}` is {} {}, not {}", row.key, below ? "at least" : "at most",
                          below ? row.minimum : row.maximum, node.text),
              row.minimum == -std::numeric_limits<double>::infinity()
                  ? fmt::format("write {} or less", row.maximum)
              : bounded ? fmt::format("write a number from {} to {}", row.minimum, row.maximum)
                        : fmt::format("write {} or more", row.minimum));
  return false;
}

SourcePlace text_place(const Reader& reader, const Node& node) {
  SourcePlace place = reader.place(node);
  place.column += node.quoted ? 1 : 0;
  return place;
}

std::optional<size_t> read_word(Reader& reader, const Node& node, const KeyRow& row,
                                const std::vector<std::string_view>& words) {
  if (node.kind != Node::Kind::scalar) {
    reader.fail_type(node, row.key, "a word", spelling_remedy("", words));
    return std::nullopt;
  }
  for (size_t index = 0; index < words.size(); ++index) {
    if (words[index] == node.text) {
      return index;
    }
  }
  reader.fail(node.mark, fmt::format("unknown value `{1}` for `{0}`", row.key, node.text),
              spelling_remedy(node.text, words));
  return std::nullopt;
}

std::optional<bool> BoolForm::read(Reader& reader, const Node& node, const KeyRow& row) {
  const auto text = plain_text(reader, node, row, "a bool");
  return text ? checked<bool>(reader, node, row, parse_bool(*text)) : std::nullopt;
}

std::optional<int64_t> IntForm::read(Reader& reader, const Node& node, const KeyRow& row) {
  const auto text = plain_text(reader, node, row, "an int");
  const auto value = text ? checked<int64_t>(reader, node, row, parse_int(*text)) : std::nullopt;
  return value && check_range(reader, node, row, static_cast<double>(*value)) ? value
                                                                              : std::nullopt;
}

std::optional<double> FloatForm::read(Reader& reader, const Node& node, const KeyRow& row) {
  const auto text = plain_text(reader, node, row, "a number");
  const auto value = text ? checked<double>(reader, node, row, parse_float(*text)) : std::nullopt;
  return value && check_range(reader, node, row, *value) ? value : std::nullopt;
}

std::optional<Time> TimeForm::read(Reader& reader, const Node& node, const KeyRow& row) {
  return quantity<Time>(reader, node, row, "a time", parse_time);
}
std::optional<Bytes> BytesForm::read(Reader& reader, const Node& node, const KeyRow& row) {
  return quantity<Bytes>(reader, node, row, "a size", parse_bytes);
}
std::optional<BytesPerSecond> RateForm::read(Reader& reader, const Node& node, const KeyRow& row) {
  const auto rate = quantity<BytesPerSecond>(reader, node, row, "a rate", parse_rate);
  if (rate && rate->count() == 0 && row.minimum > 0) {
    reader.fail(node.mark, fmt::format("`{}` cannot be zero", row.key), "write a rate: 100 Gb/s");
    return std::nullopt;
  }
  return rate;
}
std::optional<FlopsPerSecond> FlopsRateForm::read(Reader& reader, const Node& node,
                                                  const KeyRow& row) {
  const auto rate = quantity<FlopsPerSecond>(reader, node, row, "flops/s", parse_flops_rate);
  if (rate && rate->count() == 0) {
    reader.fail(node.mark, fmt::format("`{}` cannot be zero", row.key), "write 312 TFLOP/s");
    return std::nullopt;
  }
  return rate;
}

std::optional<double> PercentForm::read(Reader& reader, const Node& node, const KeyRow& row) {
  const auto text = quantity_text(reader, node, row, "a percentage");
  if (!text) {
    return std::nullopt;
  }
  const auto parsed = parse_percent(*text);
  if (const auto* error = std::get_if<QuantityError>(&parsed)) {
    reader.fail(node.mark, fmt::format("`{}`: {}", row.key, error->message), error->remedy);
    return std::nullopt;
  }
  const double fraction = std::get<double>(parsed);
  return check_range(reader, node, row, fraction) ? std::optional(fraction) : std::nullopt;
}

std::optional<Instant> InstantForm::read(Reader& reader, const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::scalar) {
    for (const Instant::Kind kind : {Instant::Kind::step, Instant::Kind::epoch}) {
      bool matched = false;
      const auto count =
          number_after(reader, node, row, kind == Instant::Kind::step ? "step" : "epoch", matched);
      if (matched) {
        return count ? std::optional(Instant{kind, {}, *count}) : std::nullopt;
      }
    }
  }
  const auto time = quantity<Time>(reader, node, row, "a time, `step N` or `epoch N`", parse_time);
  return time ? std::optional(Instant{Instant::Kind::time, *time, 0}) : std::nullopt;
}

std::optional<RankSelection> RanksForm::read(Reader& reader, const Node& node, const KeyRow& row) {
  if (node.kind == Node::Kind::scalar && (node.text == "all" || node.text == "others")) {
    return RankSelection{
        node.text == "all" ? RankSelection::Kind::all : RankSelection::Kind::others, {}};
  }
  KeyRow one = row;
  one.minimum = 0;
  one.maximum = static_cast<double>(maximum_ranks - 1);
  RankSelection selection{RankSelection::Kind::listed, {}};
  if (node.kind == Node::Kind::list) {
    for (const NodePtr& item : node.items) {
      if (const auto rank = IntForm::read(reader, *item, one)) {
        selection.ranks.push_back(*rank);
      }
    }
    if (node.items.empty()) {
      reader.fail(node.mark, fmt::format("`{}` names no rank", row.key), "write `all` or [0, 1]");
    }
    return selection;
  }
  const auto rank = IntForm::read(reader, node, one);
  if (!rank) {
    return std::nullopt;
  }
  selection.ranks.push_back(*rank);
  return selection;
}

std::optional<std::string> TextForm::read(Reader& reader, const Node& node, const KeyRow& row) {
  if (node.kind != Node::Kind::scalar) {
    reader.fail_type(node, row.key, "a text");
    return std::nullopt;
  }
  if (const std::string remedy = node.quoted ? "" : remedy_for_foreign_word(node.text);
      !remedy.empty()) {
    reader.fail(node.mark, fmt::format("`{}` takes a text; quote `{}`", row.key, node.text),
                fmt::format("write \"{}\"", node.text));
    return std::nullopt;
  }
  return node.text;
}

std::optional<std::string> NameForm::read(Reader& reader, const Node& node, const KeyRow& row) {
  if (node.kind != Node::Kind::scalar) {
    reader.fail_type(node, row.key, "a name");
    return std::nullopt;
  }
  if (!is_name(node.text)) {
    reader.fail(node.mark,
                fmt::format("`{}` takes a name, but `{}` is not one", row.key, node.text),
                "a name has letters, digits and `_`, optionally after `self.`");
    return std::nullopt;
  }
  return node.text;
}

std::optional<std::vector<std::string>> NamesForm::read(Reader& reader, const Node& node,
                                                        const KeyRow& row) {
  if (node.kind != Node::Kind::list) {
    const auto name = NameForm::read(reader, node, row);
    return name ? std::optional(std::vector{*name}) : std::nullopt;
  }
  std::vector<std::string> names;
  for (const NodePtr& item : node.items) {
    if (auto name = NameForm::read(reader, *item, row)) {
      names.push_back(std::move(*name));
    }
  }
  if (names.empty()) {
    reader.fail(node.mark, fmt::format("`{}` is empty", row.key), "list at least one name");
  }
  return names.size() == node.items.size() && !names.empty() ? std::optional(std::move(names))
                                                             : std::nullopt;
}

std::optional<std::string> PathForm::read(Reader& reader, const Node& node, const KeyRow& row) {
  const auto path = TextForm::read(reader, node, row);
  if (path && path->empty()) {
    reader.fail(node.mark, fmt::format("`{}` is an empty path", row.key), "name a file");
    return std::nullopt;
  }
  return path;
}

std::optional<PlainValue> AnyForm::read(Reader& reader, const Node& node, const KeyRow& row) {
  return read_plain(reader, node, row.key);
}

std::optional<LinkEnd> LinkEndForm::read(Reader& reader, const Node& node, const KeyRow& row) {
  for (const LinkEnd::Kind kind : {LinkEnd::Kind::node, LinkEnd::Kind::gpu}) {
    bool matched = false;
    const auto number =
        number_after(reader, node, row, kind == LinkEnd::Kind::node ? "node" : "gpu", matched);
    if (matched) {
      return number ? std::optional(LinkEnd{kind, *number}) : std::nullopt;
    }
  }
  reader.fail_type(node, row.key, "`node N` or `gpu N`", "write [node 0, node 1]");
  return std::nullopt;
}

std::optional<CopyTarget> CopyTargetForm::read(Reader& reader, const Node& node,
                                               const KeyRow& row) {
  if (node.kind == Node::Kind::scalar && node.text == "cpu") {
    return CopyTarget{};
  }
  if (node.kind == Node::Kind::scalar && node.text == "device") {
    return CopyTarget{false, true, 0};
  }
  bool matched = false;
  const auto number = number_after(reader, node, row, "gpu", matched);
  if (!matched) {
    reader.fail_type(node, row.key, "`cpu`, `device` or `gpu N`");
  }
  return number ? std::optional(CopyTarget{false, false, *number}) : std::nullopt;
}

std::optional<DType> DTypeForm::read(Reader& reader, const Node& node, const KeyRow& row) {
  const std::optional<size_t> index = read_word(reader, node, row, words());
  return index ? dtype_named(words()[*index]) : std::nullopt;
}

std::optional<std::string> DTypeNameForm::read(Reader& reader, const Node& node,
                                               const KeyRow& row) {
  const std::optional<size_t> index = read_word(reader, node, row, DTypeForm::words());
  return index ? std::optional(std::string(DTypeForm::words()[*index])) : std::nullopt;
}

}  // namespace lockstep
