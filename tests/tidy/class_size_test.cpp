// A class that can be looked through: at most 24 data members and 60 member functions.
//
// Counted are the data members of each object and all functions, private ones too; not
// constructors, the destructor, operators and nested types, which are counted for themselves.
// Static constants are no state. The limit of data members is for types that change: those with a
// member function that is neither const nor static. A struct without one describes something, such
// as options or a row of a table, and is as long as what it describes; no function of it can depend
// on all of it in ways that a reader has to follow.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <span>
#include <string>

#include "tests/tidy/declarations.hpp"
#include "tests/tidy/source.hpp"

namespace lockstep::tidy::class_size_test {

namespace {

struct Size {
  std::ptrdiff_t data = 0;
  std::ptrdiff_t functions = 0;
};

constexpr Size most = {24, 60};

/// A type that is larger than that, with its size, which may only shrink.
struct Uncut {
  std::string_view place;  ///< "path: name"
  Size size;
};

constexpr auto uncut = std::to_array<Uncut>({
    // What a rank's trainer wrote down, beside three functions that keep its lists short.
    {"model/trainer/logging/run_log.hpp: RankLog", {37, 3}},
});

struct Type {
  std::string name;
  size_t begin = 0;
  Size size;
  bool changes = false;
};

bool begins_with(std::string_view head, std::string_view word) {
  return find_word(head, word) == 0;
}

// "class A final : public B" gives "A"; a forward declaration has no name for this.
std::string name_of(std::string_view head) {
  std::string name;
  for (size_t at = 0; at < head.size() && std::string_view(":{").find(head[at]) == nowhere;) {
    size_t end = at;
    while (end < head.size() && is_word_letter(head[end])) {
      ++end;
    }
    const std::string_view word = head.substr(at, end - at);
    if (!word.empty() && word != "class" && word != "struct" && word != "final") {
      name = word;
    }
    at = std::max(end, at + 1);
  }
  return name;
}

// The letters of the word that ends before the position.
std::string_view word_before(std::string_view head, size_t end) {
  size_t begin = end;
  while (begin > 0 && is_word_letter(head[begin - 1])) {
    --begin;
  }
  return head.substr(begin, end - begin);
}

bool is_no_member(std::string_view head) {
  return begins_with(head, "using") || begins_with(head, "typedef") ||
         begins_with(head, "friend") || begins_with(head, "static_assert") ||
         has_word(head, "operator");
}

// Of `struct A;` and `enum class A : int;`, which declare no object.
bool is_forward(std::string_view head) {
  return begins_with(head, "class") || begins_with(head, "enum") ||
         (begins_with(head, "struct") &&
          head.find_first_of(" \n", skip_space(head, head.find_first_of(" \n"))) == nowhere);
}

void add_function(Type& type, std::string_view head, size_t open) {
  const bool is_destructor = head.find('~') < open;
  if (is_destructor || word_before(head, open) == type.name) {
    return;
  }
  ++type.size.functions;
  const size_t close = closing(head, open);
  const std::string_view rest = head.substr(close == nowhere ? head.size() : close);
  const bool is_const = has_word(rest.substr(0, rest.find("->")), "const");
  type.changes = type.changes || !(is_const || has_word(head.substr(0, open), "static"));
}

// `int a = f(1, 2), b;` has two: what initializes them is skipped by its brackets.
void add_data(Type& type, std::string_view declaration, std::string_view head) {
  if (begins_with(head, "static") || is_forward(head)) {
    return;
  }
  ++type.size.data;
  for (size_t comma = find_outside(declaration, ","); comma != nowhere;
       comma = find_outside(declaration, ",")) {
    ++type.size.data;
    declaration.remove_prefix(comma + 1);
  }
}

std::vector<Type> types_of(const Source& file) {
  const std::string code = code_of(file.text);
  std::map<size_t, Type> types;
  for (const Declaration& declared : declarations_of(code)) {
    const size_t begin = skip_prefixes(code, declared.begin);
    if (declared.scope != Scope::type_body || begin >= declared.body) {
      continue;
    }
    Type& type = types[declared.type];
    type.begin = declared.type;
    type.name = name_of(std::string_view(code).substr(
        declared.type, code.find('{', declared.type) - declared.type));
    const std::string_view head = std::string_view(code).substr(begin, declared.body - begin);
    const size_t open = find_outside(head, "(");
    if (is_no_member(head)) {
      continue;
    }
    if (open != nowhere) {
      add_function(type, head, open);
    } else {
      add_data(type, std::string_view(code).substr(begin, declared.end - begin), head);
    }
  }
  std::vector<Type> found;
  for (const auto& [begin, type] : types) {
    found.push_back(type);
  }
  return found;
}

bool is_within(const Type& type, const Size& limit) {
  return (type.size.data <= limit.data || !type.changes) && type.size.functions <= limit.functions;
}

std::string described(const Size& size) {
  return std::to_string(size.data) + " data members and " + std::to_string(size.functions) +
         " member functions";
}

Offences large_types(const Source& file, std::span<const Uncut> known) {
  Offences offences;
  for (const Type& type : types_of(file)) {
    const std::string name = file.path + ": " + type.name;
    const auto entry = std::ranges::find(known, name, &Uncut::place);
    const bool is_known = entry != known.end();
    const std::string has = " has " + described(type.size);
    if (is_known && is_within(type, most)) {
      offences.push_back(place(file, type.begin) + ": " + type.name + has +
                         ": take it off the list of those that are uncut");
    } else if (is_known && !is_within(type, entry->size)) {
      offences.push_back(place(file, type.begin) + ": " + type.name + has + ", and had " +
                         described(entry->size) + ": it may only shrink");
    } else if (!is_known && !is_within(type, most)) {
      offences.push_back(place(file, type.begin) + ": " + type.name + has +
                         ": cut it into parts that have a name");
    }
  }
  return offences;
}

bool is_measured(std::string_view path) {
  constexpr std::array folders = {"model", "sim",       "backend", "properties",
                                  "io",    "rehearsal", "explain", "cli"};
  return std::ranges::any_of(folders, [&](const char* folder) { return lies_in(path, folder); });
}

std::string members(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) {
    all += text;
  }
  return all;
}

}  // namespace

TEST_CASE("no class has more than 24 data members or 60 member functions") {
  for (const Source& file : cpp_files()) {
    if (is_measured(file.path)) {
      expect_none(large_types(file, uncut));
    }
  }
}

TEST_CASE("every class that is listed as uncut exists") {
  const std::vector<Source> files = cpp_files();
  for (const Uncut& entry : uncut) {
    INFO(entry.place);
    CHECK(std::ranges::any_of(files, [&](const Source& file) {
      return entry.place.starts_with(file.path + ": ") &&
             std::ranges::any_of(types_of(file), [&](const Type& type) {
               return file.path + ": " + type.name == entry.place;
             });
    }));
  }
}

TEST_CASE("the rule of classes counts data members and functions") {
  const std::vector<Type> types = types_of(
      {"a.hpp",
       "namespace a {\n"
       "class A final : public B<int, int> {\n public:\n  explicit A(int a) : a_(a) {}\n  ~A();\n"
       "  A(const A&) = delete;\n  A& operator=(const A&) = delete;\n"
       "  int a() const { return a_; }\n  template <class T>\n  T b(T t) const;\n"
       "  static A of(int);\n  [[nodiscard]] virtual bool c() const = 0;\n"
       " private:\n  friend class C;\n  using D = int;\n  struct E {\n    int x = 0, y = 0;\n  };\n"
       "  struct F;\n  enum class G { one, two };\n  static constexpr int constant = 3;\n"
       "  std::function<void(int)> call_;\n  std::map<int, int> map_{{1, 2}};\n"
       "  int a_ = f(1, 2);\n};\n}\n"});
  REQUIRE(types.size() == 2);
  CHECK(types[0].name == "A");
  CHECK(types[0].size.functions == 4);
  CHECK(types[0].size.data == 3);
  CHECK(!types[0].changes);
  CHECK(types[1].name == "E");
  CHECK(types[1].size.data == 2);
}

TEST_CASE("the rule of classes sees an offence") {
  const std::string data = members("  int a;\n", 25);
  CHECK(large_types({"sim/a.hpp", "\nclass A {\n  void f();\n" + data + "};\n"}, {}) ==
        Offences{"sim/a.hpp:2: A has 25 data members and 1 member functions: cut it into parts "
                 "that have a name"});
  CHECK(
      large_types({"a.hpp", "struct A {\n" + members("int f() const;\n", 61) + "};"}, {}).size() ==
      1);
  CHECK(large_types({"a.hpp", "class A {\n" + members("int f() const { return 1; }\n", 61) + "};"},
                    {})
            .size() == 1);
}

TEST_CASE("the rule of classes lets descriptions and small classes be") {
  const std::string data = members("  int a = 0;\n", 25);
  CHECK(large_types({"a.hpp", "struct A {\n" + data + "};\n"}, {}).empty());
  CHECK(large_types({"a.hpp", "struct A {\n" + data + "  int sum() const;\n};\n"}, {}).empty());
  CHECK(large_types({"a.hpp", "class A {\n  void f();\n" + members("int a;\n", 24) + "};\n"}, {})
            .empty());
  CHECK(large_types({"a.hpp", "struct A {\n" + members("void f();\n", 60) + "};\n"}, {}).empty());
}

TEST_CASE("a class that is listed may only shrink, and is taken off once it is small enough") {
  constexpr std::array listed = {Uncut{"a.hpp: A", {26, 1}}};
  const auto offences = [&](int data) {
    return large_types({"a.hpp", "class A {\n  void f();\n" + members("  int a;\n", data) + "};\n"},
                       listed);
  };
  CHECK(offences(26).empty());
  CHECK(offences(25).empty());
  CHECK(offences(24) == Offences{"a.hpp:1: A has 24 data members and 1 member functions: take it "
                                 "off the list of those that are uncut"});
  CHECK(offences(27) == Offences{"a.hpp:1: A has 27 data members and 1 member functions, and had "
                                 "26 data members and 1 member functions: it may only shrink"});
}

}  // namespace lockstep::tidy::class_size_test
