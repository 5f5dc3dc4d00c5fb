// Interning of nodes, with the properties that are computed once per node, and their structural order.
#include "sym/node.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "sym/range.h"

namespace selkie::sym {
namespace {

constexpr size_t chunk_bytes = 64 * 1024;

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 29);
}

uint64_t seed(Kind kind) { return mix(0x51ed270b, static_cast<uint64_t>(kind)); }

uint64_t hash_text(std::string_view text) {
  uint64_t hash = seed(Kind::symbol);
  for (unsigned char c : text) hash = mix(hash, c);
  return hash;
}

// Degree, kind and a prefix of the first part: a coarsening of compare().
uint64_t make_order_key(uint32_t degree, Kind kind, uint64_t prefix) {
  return (static_cast<uint64_t>(max_degree - degree) << 48) | (static_cast<uint64_t>(kind) << 40) | (prefix >> 24);
}

uint64_t name_prefix(std::string_view name) {
  uint64_t prefix = 0;
  for (size_t i = 0; i < 5; ++i) prefix = (prefix << 8) | (i < name.size() ? static_cast<unsigned char>(name[i]) : 0);
  return prefix << 24;
}

uint32_t saturate(uint64_t size) { return static_cast<uint32_t>(std::min(size, max_size + 1)); }

int order(int64_t a, int64_t b) { return (a > b) - (a < b); }

int compare_terms(std::span<const Term> a, std::span<const Term> b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (int c = compare(a[i].monomial, b[i].monomial)) return c;
    if (int c = order(a[i].coefficient, b[i].coefficient)) return c;
  }
  return order(static_cast<int64_t>(a.size()), static_cast<int64_t>(b.size()));
}

int compare_factors(std::span<const Factor> a, std::span<const Factor> b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (int c = compare(a[i].atom, b[i].atom)) return c;
    if (int c = order(b[i].power, a[i].power)) return c;
  }
  return order(static_cast<int64_t>(a.size()), static_cast<int64_t>(b.size()));
}

int compare_operands(std::span<const Node* const> a, std::span<const Node* const> b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (int c = compare(a[i], b[i])) return c;
  }
  return order(static_cast<int64_t>(a.size()), static_cast<int64_t>(b.size()));
}

Range range_of_call(Kind kind, std::span<const Expr> operands) {
  Range first = operands[0].node()->range();
  if (kind == Kind::floordiv) return floordiv(first, operands[1].node()->range());
  if (kind == Kind::mod) return mod(first, operands[1].node()->range());
  for (Expr operand : operands.subspan(1)) {
    first = kind == Kind::min ? min(first, operand.node()->range()) : max(first, operand.node()->range());
  }
  return first;
}

Range range_of_terms(std::span<const Term> terms, int64_t constant) {
  Range result = point(constant);
  for (const Term& term : terms) result = result + scale(term.monomial->range(), term.coefficient);
  return result;
}

Range range_of_factors(std::span<const Factor> factors) {
  Range result = point(1);
  for (const Factor& factor : factors) result = result * power(factor.atom->range(), factor.power);
  return result;
}

}  // namespace

void fail_overflow() { fail_limit("symbolic integer arithmetic leaves 64 bits"); }

int compare(const Node* a, const Node* b) {
  if (a == b) return 0;
  if (a->order_key != b->order_key) return a->order_key < b->order_key ? -1 : 1;
  switch (a->kind) {
    case Kind::constant:
      return order(a->value, b->value);
    case Kind::symbol:
      return a->name().compare(b->name());
    case Kind::product:
      return compare_factors(a->factors(), b->factors());
    case Kind::sum:
      if (int c = compare_terms(a->terms(), b->terms())) return c;
      return order(a->value, b->value);
    default:
      return compare_operands(a->operands(), b->operands());
  }
}

Interner::Interner(Context& context) : context_(context), table_(1024) {}

void* Interner::allocate(size_t bytes) {
  bytes = (bytes + 15) & ~size_t{15};
  if (bytes > room_) {
    size_t chunk = std::max(bytes, chunk_bytes);
    chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(chunk));
    free_ = chunks_.back().get();
    room_ = chunk;
  }
  void* result = free_;
  free_ += bytes;
  room_ -= bytes;
  return result;
}

void Interner::grow() {
  std::vector<Slot> old(table_.size() * 2);
  old.swap(table_);
  for (const Slot& slot : old) {
    if (!slot.node) continue;
    size_t i = slot.hash & (table_.size() - 1);
    while (table_[i].node) i = (i + 1) & (table_.size() - 1);
    table_[i] = slot;
  }
}

// The slot of the equal node, or the empty slot where it belongs.
template <class Equal>
Interner::Slot& Interner::find(uint64_t hash, Equal equal) {
  if (count_ * 2 >= table_.size()) grow();
  size_t i = hash & (table_.size() - 1);
  while (table_[i].node && !(table_[i].hash == hash && equal(*table_[i].node))) i = (i + 1) & (table_.size() - 1);
  return table_[i];
}

const Node* Interner::insert(Slot& slot, uint64_t hash, Node node, const Range& range, const void* items,
                             size_t bytes) {
  if (node.size > max_size) fail_limit("symbolic expression has more than {} parts", max_size);
  if (node.depth > max_depth) fail_limit("symbolic expression is nested more than {} deep", max_depth);
  if (node.degree > max_degree) fail_limit("symbolic expression has a degree above {}", max_degree);
  auto* stored = static_cast<Node*>(allocate(sizeof(Node) + bytes));
  node.context = &context_;
  node.id = static_cast<uint32_t>(count_++);
  node.lo = range.lo.value_or(0);
  node.hi = range.hi.value_or(0);
  node.has_lo = range.lo.has_value();
  node.has_hi = range.hi.has_value();
  node.as_term = {1, stored};
  node.as_factor = {stored, 1};
  new (stored) Node(node);
  if (bytes) std::memcpy(static_cast<void*>(stored + 1), items, bytes);
  slot = {hash, stored};
  return stored;
}

const Node* Interner::constant(int64_t value) {
  bool small = value >= -128 && value <= 128;
  if (small && small_constants_[value + 128]) return small_constants_[value + 128];
  uint64_t hash = mix(seed(Kind::constant), static_cast<uint64_t>(value));
  Slot& slot = find(hash, [&](const Node& n) { return n.kind == Kind::constant && n.value == value; });
  if (!slot.node) {
    uint64_t prefix = static_cast<uint64_t>(value) ^ (uint64_t{1} << 63);
    insert(slot, hash,
           {.order_key = make_order_key(0, Kind::constant, prefix), .value = value, .size = 1, .kind = Kind::constant},
           point(value), nullptr, 0);
  }
  if (small) small_constants_[value + 128] = slot.node;
  return slot.node;
}

bool Interner::has_symbol(std::string_view name) const {
  uint64_t hash = hash_text(name);
  for (size_t i = hash & (table_.size() - 1); table_[i].node; i = (i + 1) & (table_.size() - 1)) {
    if (table_[i].node->kind == Kind::symbol && table_[i].node->name() == name) return true;
  }
  return false;
}

const Node* Interner::symbol(std::string_view name) {
  if (name.empty()) fail("a symbol needs a name");
  uint64_t hash = hash_text(name);
  Slot& slot = find(hash, [&](const Node& n) { return n.kind == Kind::symbol && n.name() == name; });
  if (slot.node) return slot.node;
  return insert(slot, hash,
                {.order_key = make_order_key(1, Kind::symbol, name_prefix(name)),
                 .count = static_cast<uint32_t>(name.size()),
                 .size = 1,
                 .degree = 1,
                 .kind = Kind::symbol},
                {.lo = 0, .hi = {}}, name.data(), name.size());
}

const Node* Interner::sum(std::span<const Term> terms, int64_t constant_part) {
  if (terms.empty()) return constant(constant_part);
  if (terms.size() == 1 && constant_part == 0 && terms[0].coefficient == 1) return terms[0].monomial;
  if (terms.size() > max_terms) fail_limit("symbolic expression has more than {} terms", max_terms);
  uint64_t hash = mix(seed(Kind::sum), static_cast<uint64_t>(constant_part));
  for (const Term& term : terms) hash = mix(mix(hash, term.monomial->id), static_cast<uint64_t>(term.coefficient));
  Slot& slot = find(hash, [&](const Node& n) {
    return n.kind == Kind::sum && n.value == constant_part &&
           std::ranges::equal(n.terms(), terms, [](const Term& a, const Term& b) {
             return a.coefficient == b.coefficient && a.monomial == b.monomial;
           });
  });
  if (slot.node) return slot.node;
  uint16_t depth = 0;
  uint64_t size = 1;
  for (const Term& term : terms) {
    depth = std::max(depth, term.monomial->depth);
    size += term.monomial->size;
  }
  const Node* lead = terms[0].monomial;
  return insert(slot, hash,
                {.order_key = make_order_key(lead->degree, Kind::sum, lead->order_key),
                 .value = constant_part,
                 .count = static_cast<uint32_t>(terms.size()),
                 .size = saturate(size),
                 .depth = static_cast<uint16_t>(depth),
                 .degree = lead->degree,
                 .kind = Kind::sum},
                range_of_terms(terms, constant_part), terms.data(), terms.size_bytes());
}

const Node* Interner::product(std::span<const Factor> factors) {
  if (factors.size() == 1 && factors[0].power == 1) return factors[0].atom;
  uint64_t hash = seed(Kind::product);
  for (const Factor& factor : factors) hash = mix(mix(hash, factor.atom->id), static_cast<uint64_t>(factor.power));
  Slot& slot = find(hash, [&](const Node& n) {
    return n.kind == Kind::product && std::ranges::equal(n.factors(), factors, [](const Factor& a, const Factor& b) {
             return a.power == b.power && a.atom == b.atom;
           });
  });
  if (slot.node) return slot.node;
  uint16_t depth = 0;
  uint64_t size = 1;
  int64_t degree = 0;
  for (const Factor& factor : factors) {
    size += factor.atom->size * static_cast<uint64_t>(factor.power);
    depth = std::max(depth, factor.atom->depth);
    degree = std::min(degree + factor.power, max_degree + 1);
  }
  return insert(slot, hash,
                {.order_key = make_order_key(static_cast<uint32_t>(degree), Kind::product, factors[0].atom->order_key),
                 .count = static_cast<uint32_t>(factors.size()),
                 .size = saturate(size),
                 .depth = static_cast<uint16_t>(depth),
                 .degree = static_cast<uint16_t>(degree),
                 .kind = Kind::product},
                degree > max_degree ? Range{} : range_of_factors(factors), factors.data(), factors.size_bytes());
}

const Node* Interner::call(Kind kind, std::span<const Expr> operands) {
  if (operands.size() > max_operands) fail_limit("min or max of more than {} expressions", max_operands);
  uint64_t hash = seed(kind);
  for (Expr operand : operands) hash = mix(hash, operand.node()->id);
  Slot& slot = find(hash, [&](const Node& n) {
    return n.kind == kind &&
           std::ranges::equal(n.operands(), operands, [](const Node* a, Expr b) { return a == b.node(); });
  });
  if (slot.node) return slot.node;
  uint16_t depth = 0;
  uint64_t size = 1;
  for (Expr operand : operands) {
    depth = std::max(depth, operand.node()->depth);
    size += operand.node()->size;
  }
  return insert(slot, hash,
                {.order_key = make_order_key(1, kind, operands[0].node()->order_key),
                 .count = static_cast<uint32_t>(operands.size()),
                 .size = saturate(size),
                 .depth = static_cast<uint16_t>(depth + 1),
                 .degree = 1,
                 .kind = kind},
                range_of_call(kind, operands), operands.data(), operands.size_bytes());
}

}  // namespace selkie::sym
