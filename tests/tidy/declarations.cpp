#include "tests/tidy/declarations.hpp"

#include <algorithm>
#include <string>

#include "tests/tidy/source.hpp"

namespace lockstep::tidy {

size_t skip_prefixes(std::string_view code, size_t at) {
  for (;;) {
    at = skip_space(code, at);
    const std::string_view rest = code.substr(at);
    size_t open = nowhere;
    if (rest.starts_with("[[")) {
      open = at;
    } else if (find_word(rest, "template") == 0) {
      open = code.find('<', at);
    } else if (find_word(rest, "alignas") == 0) {
      open = code.find('(', at);
    }
    const size_t close = open == nowhere ? nowhere : closing(code, open);
    if (close == nowhere) {
      return at;
    }
    at = close + 1;
  }
}

size_t find_outside(std::string_view head, std::string_view marks) {
  int depth = 0;
  int angles = 0;
  for (size_t i = 0; i < head.size(); ++i) {
    const char letter = head[i];
    if (depth == 0 && angles == 0 && marks.find(letter) != nowhere) {
      return i;
    }
    if (letter == '<' && depth == 0 && i > 0 && is_word_letter(head[i - 1])) {
      ++angles;
    } else if (letter == '>' && depth == 0 && angles > 0) {
      --angles;
    }
    depth += std::string_view("([{").find(letter) != nowhere ? 1 : 0;
    depth -= std::string_view(")]}").find(letter) != nowhere ? 1 : 0;
  }
  return nowhere;
}

namespace {

enum class Opened { namespace_, type, initializer, function };

bool begins_with_word(std::string_view head, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return find_word(head, word) == 0; });
}

bool begins_type(std::string_view head) {
  while (begins_with_word(head, {"static", "inline", "constexpr", "const", "typedef"})) {
    head.remove_prefix(skip_space(head, head.find_first_of(" \n")));
  }
  return begins_with_word(head, {"class", "struct", "union", "enum"});
}

Opened opened_by(std::string_view head) {
  const size_t mark = find_outside(head, "=(");
  if (begins_with_word(head, {"namespace"}) ||
      (begins_with_word(head, {"inline"}) && has_word(head, "namespace")) ||
      (begins_with_word(head, {"extern"}) && mark == nowhere)) {
    return Opened::namespace_;
  }
  if (has_word(head, "operator")) {
    return Opened::function;
  }
  if (begins_type(head) && (mark == nowhere || head[mark] != '=')) {
    return Opened::type;
  }
  return mark != nowhere && head[mark] == '(' ? Opened::function : Opened::initializer;
}

// "public:" and its like end where a declaration begins.
size_t skip_access(std::string_view code, size_t at) {
  for (;;) {
    at = skip_space(code, at);
    const size_t colon = code.find(':', at);
    if (colon == nowhere ||
        !begins_with_word(code.substr(at), {"public", "private", "protected"})) {
      return at;
    }
    at = colon + 1;
  }
}

class Scanner {
 public:
  explicit Scanner(std::string_view code) : code_(code) {}

  std::vector<Declaration> scan() {
    while (at_ < code_.size()) {
      step();
    }
    return std::move(found_);
  }

 private:
  void step() {
    const char letter = code_[at_];
    if (letter == '(' || letter == '[') {
      at_ = after_closing();
    } else if (letter == '{') {
      open();
    } else if (letter == '}') {
      if (!scopes_.empty()) {
        scopes_.pop_back();
      }
      begin_ = ++at_;
    } else if (letter == ';') {
      add(false, at_, at_);
    } else {
      ++at_;
    }
  }

  void open() {
    const size_t head = skip_prefixes(code_, skip_access(code_, begin_));
    const Opened opened = opened_by(code_.substr(head, at_ - head));
    if (opened == Opened::namespace_ || opened == Opened::type) {
      scopes_.push_back(opened == Opened::type ? Opening{Scope::type_body, head} : Opening{});
      begin_ = ++at_;
      return;
    }
    const size_t brace = at_;
    at_ = after_closing();
    const size_t next = skip_space(code_, at_);
    const bool goes_on = next < code_.size() && (code_[next] == ',' || code_[next] == '{');
    if (opened == Opened::function && !goes_on) {
      add(true, brace, at_ - 1);
    }
  }

  size_t after_closing() const {
    const size_t close = closing(code_, at_);
    return close == nowhere ? code_.size() : close + 1;
  }

  void add(bool is_function, size_t body, size_t end) {
    const size_t begin = skip_access(code_, begin_);
    if (begin < end) {
      const size_t mark = find_outside(code_.substr(begin, end - begin), "={");
      const Opening within = scopes_.empty() ? Opening{} : scopes_.back();
      found_.push_back({begin, is_function || mark == nowhere ? body : begin + mark, end,
                        is_function, within.scope, within.type});
    }
    begin_ = at_ = end + 1;
  }

  struct Opening {
    Scope scope = Scope::namespace_body;
    size_t type = nowhere;
  };

  std::string_view code_;
  size_t at_ = 0;
  size_t begin_ = 0;
  std::vector<Opening> scopes_;
  std::vector<Declaration> found_;
};

}  // namespace

std::vector<Declaration> declarations_of(std::string_view code) { return Scanner(code).scan(); }

}  // namespace lockstep::tidy
