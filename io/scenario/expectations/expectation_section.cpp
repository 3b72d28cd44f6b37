#include <fmt/format.h>

#include <algorithm>

#include "io/expression/parser.hpp"
#include "io/expression/quantity.hpp"
#include "io/scenario/expectations/expectation_names.hpp"
#include "io/scenario/expectations/expectation_source.hpp"
#include "io/scenario/reader/scalar.hpp"
#include "io/scenario/sections/sections.hpp"

namespace lockstep {
namespace {

using Source = ExpectationSource;

size_t offset_of(const Source& source, std::string_view part) { return source.offset_of(part); }

/// Position of `needle` outside of single quotes.
size_t find_outside_quotes(std::string_view text, std::string_view needle) {
  bool quoted = false;
  for (size_t position = 0; position < text.size(); ++position) {
    if (text[position] == '\'') {
      quoted = !quoted;
    } else if (!quoted && text.substr(position, needle.size()) == needle) {
      return position;
    }
  }
  return std::string_view::npos;
}

/// Takes `on rank N` off the end.
bool take_rank(const Source& source, std::string_view& rest, Expectation& expectation) {
  constexpr std::string_view phrase = " on rank ";
  const size_t position = find_outside_quotes(rest, phrase);
  if (position == std::string_view::npos) {
    return true;
  }
  const std::string_view digits = trimmed(rest.substr(position + phrase.size()));
  const auto rank = parse_int(digits);
  const auto* value = std::get_if<int64_t>(&rank);
  if (value == nullptr || *value < 0 || *value >= maximum_ranks) {
    source.fail(offset_of(source, digits), fmt::format("`on rank` takes a rank, not `{}`", digits),
                "write `on rank 0` at the end");
    return false;
  }
  expectation.rank = *value;
  rest = trimmed(rest.substr(0, position));
  return true;
}

/// `metric KEY` becomes one name, because a key may hold any character.
std::string name_metrics(const Source& source, std::string_view part,
                         std::vector<ResultName>& results) {
  constexpr std::string_view word = "metric ";
  std::string out(part);
  size_t from = 0;
  while ((from = out.find(word, from)) != std::string::npos) {
    const bool starts =
        from == 0 || out[from - 1] == ' ' || out[from - 1] == '(' || out[from - 1] == '.';
    if (!starts) {
      from += word.size();
      continue;
    }
    size_t begin = from;
    while (begin > 0 && out[begin - 1] != ' ' && out[begin - 1] != '(') {
      --begin;
    }
    const std::string prefix = out.substr(begin, from - begin);
    size_t key = from + word.size();
    while (key < out.size() && out[key] == ' ') {
      ++key;
    }
    size_t end = out.find_first_of(" )", key);
    end = end == std::string::npos ? out.size() : end;
    // As long as what it stands for, so that places behind it stay right.
    std::string placeholder = fmt::format("m{}_", results.size());
    placeholder.resize(std::max(placeholder.size(), end - begin), '_');
    results.push_back({placeholder, prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1),
                       "metric", out.substr(key, end - key),
                       source.at(offset_of(source, part) + begin)});
    out.replace(begin, end - begin, placeholder);
    from = begin + placeholder.size();
  }
  return out;
}

std::optional<Expression> parse_part(const Source& source, std::string_view part,
                                     std::vector<ResultName>& results) {
  const std::string named = name_metrics(source, part, results);
  ParsedExpression parsed =
      parse_expression(named, source.at(offset_of(source, part)), TooLarge::largest);
  if (const auto* errors = std::get_if<std::vector<SyntaxError>>(&parsed)) {
    for (const SyntaxError& error : *errors) {
      source.reader.fail_at(error.place, error.message, error.remedy);
    }
    return std::nullopt;
  }
  return std::get<Expression>(std::move(parsed));
}

/// The names of an expression that are results; complains about the others.
void collect_results(const Source& source, std::string_view part, const Expression& expression,
                     std::vector<ResultName>& results) {
  for (const std::string& name : expression.names()) {
    const auto known = [&](const ResultName& result) { return result.placeholder == name; };
    if (std::any_of(results.begin(), results.end(), known)) {
      continue;
    }
    ResultName result = split_result_name(name);
    const size_t found = part.find(name);
    const size_t offset = offset_of(source, part) + (found == std::string_view::npos ? 0 : found);
    result.place = source.at(offset);
    const std::string remedy = remedy_for_result_name(result);
    if (!remedy.empty()) {
      source.fail(offset, fmt::format("there is no result `{}`", name), remedy);
      continue;
    }
    results.push_back(std::move(result));
  }
}

/// Whether `devices` is compared with a list somewhere: then it is the list of them, not how many.
bool compares_device_lists(const ExpressionNode& node) {
  if (node.kind == ExpressionNode::Kind::binary && is_comparison(node.operation)) {
    const auto& [left, right] = std::tie(*node.parts[0], *node.parts[1]);
    const auto is_devices = [](const ExpressionNode& part) {
      return part.kind == ExpressionNode::Kind::name &&
             split_result_name(part.name).name == "devices";
    };
    return (left.kind == ExpressionNode::Kind::list && is_devices(right)) ||
           (right.kind == ExpressionNode::Kind::list && is_devices(left));
  }
  return std::ranges::any_of(node.parts,
                             [](const auto& part) { return compares_device_lists(*part); });
}

std::optional<Expression> read_part(const Source& source, std::string_view part,
                                    Expectation& expectation) {
  auto expression = parse_part(source, part, expectation.results);
  if (expression) {
    collect_results(source, part, *expression, expectation.results);
    for (ResultName& result : expectation.results) {
      if (result.name == "devices" && compares_device_lists(expression->root())) {
        result.name = "device_list";
      }
    }
  }
  return expression;
}

bool read_tolerance(const Source& source, std::string_view text, Expectation& expectation) {
  Tolerance tolerance;
  const auto percent = parse_percent(text);
  if (const auto* fraction = std::get_if<double>(&percent)) {
    tolerance.fraction = *fraction;
  } else {
    std::vector<ResultName> none;
    auto absolute = parse_part(source, text, none);
    if (!absolute) {
      return false;
    }
    if (!absolute->is_constant()) {
      source.fail(offset_of(source, text), "a tolerance is a constant", "write `+- 5 %`");
      return false;
    }
    tolerance.absolute = std::move(absolute);
  }
  expectation.tolerance = std::move(tolerance);
  return true;
}

void read_comparison(const Source& source, std::string_view rest, Expectation& expectation) {
  constexpr std::string_view sign = "+-";
  const size_t tolerance = find_outside_quotes(rest, sign);
  if (tolerance == std::string_view::npos) {
    expectation.expression = read_part(source, rest, expectation);
    return;
  }
  const std::string_view allowance = trimmed(rest.substr(tolerance + sign.size()));
  const std::string_view compared = trimmed(rest.substr(0, tolerance));
  const size_t equals = find_outside_quotes(compared, "==");
  if (equals == std::string_view::npos) {
    source.fail(offset_of(source, rest) + tolerance, "`+-` must follow `left == right`",
                "write `step_time == 400 ms +- 5 %`");
    return;
  }
  if (!read_tolerance(source, allowance, expectation)) {
    return;
  }
  expectation.left = read_part(source, trimmed(compared.substr(0, equals)), expectation);
  expectation.right = read_part(source, trimmed(compared.substr(equals + 2)), expectation);
}

Expectation read_expectation(Reader& reader, const Node& node) {
  Expectation expectation;
  expectation.place = text_place(reader, node);
  expectation.text = node.text;
  const Source source{reader, node.text, expectation.place};
  std::string_view rest = trimmed(node.text);
  if (rest.empty()) {
    source.fail(0, "an expectation is empty", "write `no_hang`, or `step_time < 400 ms`");
    return expectation;
  }
  if (read_finding_expectation(source, rest, expectation) ||
      !take_rank(source, rest, expectation)) {
    return expectation;
  }
  const std::vector<std::pair<std::string_view, ExpectationKind>> words = {
      {"no_hang", ExpectationKind::no_hang},         {"hang", ExpectationKind::hang},
      {"no_findings", ExpectationKind::no_findings}, {"refused", ExpectationKind::refused},
      {"raises", ExpectationKind::raises},           {"assertion", ExpectationKind::assertion}};
  for (const auto& [word, kind] : words) {
    if (rest == word) {
      expectation.kind = kind;
      if (expectation.rank && kind == ExpectationKind::assertion) {
        expectation.on_ranks = {*expectation.rank};
      } else if (expectation.rank) {
        source.fail(0, fmt::format("`{}` speaks of the whole run, not of one rank", word),
                    "remove `on rank`, or name the finding: finding LS101 on rank 0");
      }
      return expectation;
    }
  }
  if (is_name(rest)) {
    source.fail(0, fmt::format("there is no expectation `{}`", rest),
                spelling_remedy(rest, {"no_hang", "hang", "no_findings", "finding", "no_finding",
                                       "warning", "note", "refused", "raises", "assertion"}));
    return expectation;
  }
  expectation.kind = ExpectationKind::expression;
  read_comparison(source, rest, expectation);
  return expectation;
}

}  // namespace

std::vector<Expectation> read_expectations(Reader& reader, const Node& node) {
  std::vector<Expectation> expectations;
  if (node.kind != Node::Kind::list) {
    reader.fail_type(node, "expect", "a list", "write [no_hang]");
    return expectations;
  }
  for (const NodePtr& item : node.items) {
    if (item->kind != Node::Kind::scalar) {
      reader.fail_type(*item, "expect", "words or expressions", "quote an expectation");
      continue;
    }
    expectations.push_back(read_expectation(reader, *item));
  }
  return expectations;
}

}  // namespace lockstep
