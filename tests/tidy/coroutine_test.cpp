// Coroutine forms that g++ 12 miscompiles, or whose captures die at the first suspension.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/tidy/source.hpp"

namespace lockstep::tidy::coroutine_test {

namespace {

struct Lambda {
  size_t begin = 0;
  size_t body = 0;
  size_t end = 0;
  bool captures = false;
};

// A '[' that follows a name, a ')' or a ']' is a subscript; "[[" is an attribute.
bool begins_lambda(std::string_view code, size_t open) {
  if (code[open] != '[' || code.substr(open).starts_with("[[")) {
    return false;
  }
  const size_t before = open == 0 ? nowhere : code.find_last_not_of(" \t\n", open - 1);
  if (before == nowhere || !(is_word_letter(code[before]) || code[before] == ')' ||
                             code[before] == ']' || code[before] == '[')) {
    return true;
  }
  const std::string_view text = code.substr(0, before + 1);
  return text.ends_with("return") || text.ends_with("co_await") || text.ends_with("co_yield");
}

std::vector<Lambda> lambdas_of(std::string_view code) {
  std::vector<Lambda> lambdas;
  for (size_t open = code.find('['); open != nowhere; open = code.find('[', open + 1)) {
    const size_t close = begins_lambda(code, open) ? closing(code, open) : nowhere;
    if (close == nowhere) {
      continue;
    }
    size_t at = close + 1;
    while (at < code.size() && std::string_view("{};,)").find(code[at]) == nowhere) {
      const size_t past = code[at] == '(' ? closing(code, at) : at;
      at = past == nowhere ? code.size() : past + 1;
    }
    if (at < code.size() && code[at] == '{' && closing(code, at) != nowhere) {
      lambdas.push_back({open, at, closing(code, at), skip_space(code, open + 1) < close});
    }
  }
  return lambdas;
}

std::vector<size_t> positions_of(std::string_view code, std::string_view word) {
  std::vector<size_t> positions;
  for (size_t at = find_word(code, word); at != nowhere; at = find_word(code, word, at + 1)) {
    positions.push_back(at);
  }
  return positions;
}

Offences capturing_coroutines(const Source& file) {
  const std::string code = code_of(file.text);
  const std::vector<Lambda> lambdas = lambdas_of(code);
  std::vector<size_t> guilty;
  for (const char* word : {"co_await", "co_return", "co_yield"}) {
    for (const size_t position : positions_of(code, word)) {
      const Lambda* innermost = nullptr;  // lambdas stand in the order in which they begin
      for (const Lambda& lambda : lambdas) {
        innermost = lambda.body < position && position < lambda.end ? &lambda : innermost;
      }
      if (innermost != nullptr && innermost->captures) {
        guilty.push_back(innermost->begin);
      }
    }
  }
  std::sort(guilty.begin(), guilty.end());
  guilty.erase(std::unique(guilty.begin(), guilty.end()), guilty.end());
  Offences offences;
  for (const size_t position : guilty) {
    offences.push_back(place(file, position) + ": a lambda with captures is a coroutine");
  }
  return offences;
}

Offences awaits_in_catch(const Source& file) {
  const std::string code = code_of(file.text);
  Offences offences;
  for (const size_t handler : positions_of(code, "catch")) {
    const size_t open = code.find('{', handler);
    const size_t close = open == nowhere ? nowhere : closing(code, open);
    for (const size_t position : positions_of(code, "co_await")) {
      if (close != nowhere && open < position && position < close) {
        offences.push_back(place(file, position) + ": co_await inside a catch block");
      }
    }
  }
  return offences;
}

// The operand of co_await: up to the ';' or to the bracket that was opened before it.
std::string_view awaited(std::string_view code, size_t begin) {
  int depth = 0;
  for (size_t i = begin; i < code.size(); ++i) {
    depth += std::string_view("([{").find(code[i]) != nowhere ? 1 : 0;
    depth -= std::string_view(")]}").find(code[i]) != nowhere ? 1 : 0;
    if (depth < 0 || (depth == 0 && code[i] == ';')) {
      return code.substr(begin, i - begin);
    }
  }
  return code.substr(begin);
}

// "vector<int>{...}" or, inside of a braced list, any mention of a type that owns memory: both are
// temporaries that g++ 12 may destroy twice. Members of a named type cannot be seen from here.
bool builds_owner_in_braces(std::string_view expression) {
  for (const char* owner :
       {"vector", "string", "to_string", "format", "move", "map", "set", "deque", "function",
        "optional", "initializer_list", "make_unique", "make_shared"}) {
    for (const size_t at : positions_of(expression, owner)) {
      size_t past = at + std::string_view(owner).size();
      if (past < expression.size() && expression[past] == '<') {
        const size_t close = closing(expression, past);
        past = close == nowhere ? expression.size() : close + 1;
      }
      const std::string_view before = expression.substr(0, at);
      const bool in_braces = std::count(before.begin(), before.end(), '{') >
                             std::count(before.begin(), before.end(), '}');
      const bool is_call = past < expression.size() && expression[past] == '(';
      const bool is_list = past < expression.size() && expression[past] == '{';
      if (is_list || (in_braces && is_call)) {
        return true;
      }
    }
  }
  return false;
}

Offences owners_in_awaits(const Source& file) {
  const std::string code = code_of(file.text);
  Offences offences;
  for (const size_t position : positions_of(code, "co_await")) {
    if (builds_owner_in_braces(awaited(code, position + std::string_view("co_await").size()))) {
      offences.push_back(place(file, position) +
                         ": co_await of an expression that builds an owner of memory in braces");
    }
  }
  return offences;
}

}  // namespace

TEST_CASE("no lambda with captures is a coroutine") {
  for (const Source& file : cpp_files()) {
    expect_none(capturing_coroutines(file));
  }
}

TEST_CASE("no catch block awaits") {
  for (const Source& file : cpp_files()) {
    expect_none(awaits_in_catch(file));
  }
}

TEST_CASE("no awaited expression builds an owner of memory in braces") {
  for (const Source& file : cpp_files()) {
    expect_none(owners_in_awaits(file));
  }
}

TEST_CASE("the rule of coroutine lambdas sees an offence") {
  CHECK(
      capturing_coroutines({"a.cpp", "\nauto f = [&](Rank& r) -> Program { co_await r.b(); };"}) ==
      Offences{"a.cpp:2: a lambda with captures is a coroutine"});
  CHECK(capturing_coroutines({"a.cpp", "run([this] { co_return; });"}).size() == 1);
  CHECK(capturing_coroutines({"a.cpp", "return [a] { g([] {}); co_return; };"}).size() == 1);
  CHECK(capturing_coroutines({"a.cpp", "auto f = [](Rank& r) -> Program { co_await r.b(); };"})
            .empty());
  CHECK(capturing_coroutines({"a.cpp", "f([&] { return [](A a) -> B { co_return; }; });"}).empty());
  CHECK(
      capturing_coroutines({"a.cpp", "Program f() { g(a[i], [&] { h(); }); co_return; }"}).empty());
}

TEST_CASE("the rule of catch blocks sees an offence") {
  CHECK(awaits_in_catch({"a.cpp", "try { f(); }\ncatch (const A& a) {\n co_await b(); }"}) ==
        Offences{"a.cpp:3: co_await inside a catch block"});
  CHECK(awaits_in_catch({"a.cpp", "try { co_await f(); } catch (...) { b(); } co_await c();"})
            .empty());
}

TEST_CASE("the rule of awaited braces sees an offence") {
  CHECK(owners_in_awaits({"a.cpp", "co_await f(std::vector<Ticket>{a, b});"}).size() == 1);
  CHECK(owners_in_awaits({"a.cpp", "co_await f({.after = std::vector<A>{a}});"}).size() == 1);
  CHECK(owners_in_awaits({"a.cpp", "co_await f({.name = fmt::format(x, 1)});"}).size() == 1);
  CHECK(owners_in_awaits({"a.cpp", "co_await f(A{std::move(b)});"}).size() == 1);
  CHECK(owners_in_awaits({"a.cpp", "co_await f({.after = {a, b}}); std::vector<int>{1};"}).empty());
}

}  // namespace lockstep::tidy::coroutine_test
