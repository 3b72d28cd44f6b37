// No state outlives or crosses a run; model/ reads no clock, starts no thread, sees no environment.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/tidy/declarations.hpp"
#include "tests/tidy/source.hpp"

namespace lockstep::tidy::state_test {

namespace {

std::string without_template_lists(std::string_view head) {
  std::string rest;
  int depth = 0;
  for (const char letter : head) {
    depth += letter == '<' ? 1 : 0;
    if (depth == 0) {
      rest += letter;
    }
    depth -= letter == '>' && depth > 0 ? 1 : 0;
  }
  return rest;
}

// `const` must be said of the variable itself: `const char* name` can be pointed elsewhere, and a
// vector of constants can grow.
bool is_constant(std::string_view head) {
  const std::string rest = without_template_lists(head);
  const size_t star = rest.rfind('*');
  return has_word(rest, "constexpr") ||
         has_word(std::string_view(rest).substr(star == nowhere ? 0 : star), "const");
}

// Where the name and type of a variable end: "static int a = 1;" gives "static int a ".
std::string_view head_at(std::string_view code, size_t begin) {
  return code.substr(begin, code.find_first_of("={;", begin) - begin);
}

bool is_variable(std::string_view head) {
  for (const char* word : {"using", "typedef", "namespace", "class", "struct", "union", "enum",
                           "static_assert", "template", "concept", "extern", "friend", "operator",
                           "asm", "requires", "BENCHMARK", "BENCHMARK_MAIN"}) {
    if (has_word(head, word)) {
      return false;
    }
  }
  return skip_space(head, 0) < head.size() && without_template_lists(head).find('(') == nowhere;
}

Offences mutable_globals(const Source& file) {
  const std::string code = code_of(file.text);
  Offences offences;
  for (const Declaration& declared : declarations_of(code)) {
    const std::string_view head =
        std::string_view(code).substr(declared.begin, declared.body - declared.begin);
    if (!declared.is_function && declared.scope == Scope::namespace_body && is_variable(head) &&
        !is_constant(head)) {
      offences.push_back(place(file, declared.begin) + ": a mutable variable of a namespace");
    }
  }
  return offences;
}

// At namespace or type scope `static T name(...)` is a function; inside a function it is not.
bool is_static_function(std::string_view code, const std::vector<Declaration>& declarations,
                        size_t position) {
  const std::string_view head = head_at(code, position);
  return head.find('(') != nowhere &&
         std::none_of(declarations.begin(), declarations.end(), [&](const Declaration& declared) {
           return declared.is_function && declared.body < position && position < declared.end;
         });
}

Offences mutable_statics(const Source& file) {
  const std::string code = code_of(file.text);
  const std::vector<Declaration> declarations = declarations_of(code);
  Offences offences;
  for (size_t at = find_word(code, "static"); at != nowhere;
       at = find_word(code, "static", at + 1)) {
    if (!is_constant(head_at(code, at)) && !is_static_function(code, declarations, at)) {
      offences.push_back(place(file, at) + ": a mutable static variable");
    }
  }
  for (size_t at = find_word(code, "thread_local"); at != nowhere;
       at = find_word(code, "thread_local", at + 1)) {
    offences.push_back(place(file, at) + ": a thread_local variable");
  }
  return offences;
}

Offences impure_includes(const Source& file) {
  Offences offences;
  for (const char* header : {"thread", "mutex", "shared_mutex", "condition_variable", "future",
                             "semaphore", "latch", "barrier", "stop_token", "atomic", "chrono",
                             "ctime", "time.h", "random", "fstream", "iostream", "filesystem"}) {
    const size_t at = file.text.find("#include <" + std::string(header) + ">");
    if (at != nowhere) {
      offences.push_back(place(file, at) + ": model/ must not include <" + header + ">");
    }
  }
  const std::string code = code_of(file.text);
  for (const char* word : {"getenv", "gettimeofday", "clock_gettime", "srand", "rand"}) {
    const size_t at = find_word(code, word);
    if (at != nowhere) {
      offences.push_back(place(file, at) + ": model/ must not call " + word);
    }
  }
  return offences;
}

}  // namespace

TEST_CASE("no variable of a namespace is mutable") {
  for (const Source& file : cpp_files()) {
    expect_none(mutable_globals(file));
  }
}

TEST_CASE("no static variable is mutable") {
  for (const Source& file : cpp_files()) {
    expect_none(mutable_statics(file));
  }
}

TEST_CASE("model has no clock, thread, file or environment") {
  for (const Source& file : cpp_files()) {
    if (lies_in(file.path, "model")) {
      expect_none(impure_includes(file));
    }
  }
}

TEST_CASE("the rule of namespace variables sees an offence") {
  for (const char* text :
       {"int count = 0;", "namespace a {\nstd::vector<int> list;\n}", "inline int a{3};",
        "const char* name = \"x\";", "std::function<void(int)> callback;",
        "namespace a { void f() { int b; } double c; }", "std::map<int, int> m = {{1, 2}};",
        "std::vector<const A> a;"}) {
    INFO(text);
    CHECK(mutable_globals({"a.cpp", text}).size() == 1);
  }
}

TEST_CASE("the rule of namespace variables lets constants and functions be") {
  for (const char* text :
       {"constexpr int count = 0;", "inline constexpr A a{3};", "const char* const name = \"x\";",
        "int f(int a = 3);", "using A = int;", "struct A { int b = 0; std::string c; };",
        "enum class A : uint8_t { b, c };", "namespace fs = std::filesystem;",
        "void f() { int local = 1; }", "bool operator==(A a, A b) { return a.x == b.x; }",
        "template <class T> struct A<T> { T b{}; };", "class A;", "static_assert(sizeof(A) == 8);",
        "A::A(int b) : b_{b}, c_{1} { f(); }", "auto operator<=>(const A&) const = default;",
        "const std::vector<const char*> names = {\"a\"};"}) {
    INFO(text);
    CHECK(mutable_globals({"a.cpp", text}).empty());
  }
}

TEST_CASE("the rule of static variables sees an offence") {
  for (const char* text : {"void f() { static int calls = 0; }", "class A { static int count; };",
                           "static std::vector<int> list;", "void f() { static A a(3); }",
                           "static const char* name;", "thread_local int depth = 0;"}) {
    INFO(text);
    CHECK(mutable_statics({"a.cpp", text}).size() == 1);
  }
}

TEST_CASE("the rule of static variables lets constants and functions be") {
  for (const char* text :
       {"static int f(int a = 3);", "class A { static A of(int a) { return A{a}; } };",
        "void f() { static constexpr int a = 1; static const A b = make(); }",
        "int a = static_cast<int>(b);", "// static int a;\n"}) {
    INFO(text);
    CHECK(mutable_statics({"a.cpp", text}).empty());
  }
}

TEST_CASE("the rule of a pure model sees an offence") {
  CHECK(impure_includes({"model/a.cpp", "\n#include <chrono>\n"}) ==
        Offences{"model/a.cpp:2: model/ must not include <chrono>"});
  CHECK(impure_includes({"model/a.cpp", "auto home = std::getenv(\"HOME\");"}).size() == 1);
  CHECK(impure_includes({"model/a.cpp", "// getenv\n#include <vector>"}).empty());
}

}  // namespace lockstep::tidy::state_test
