/** The mark of Laneway, as in public/icon.svg. */
export function Mark() {
  return (
    <svg width="22" height="22" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#0f5a5e" />
      <path d="M8 8v16M16 8v10M24 8v16" stroke="#fff" strokeWidth="3.4" strokeLinecap="round" />
      <circle cx="16" cy="23" r="2.2" fill="#ffb454" />
    </svg>
  );
}
