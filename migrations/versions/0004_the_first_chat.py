"""the first chat: bots, users, chats, subscribers, updates, budgets, cards, invitations"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "bots",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("username", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("paid", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("stopped_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("stopped_why", sa.Text(), nullable=True),
        sa.Column("poller", sa.Text(), nullable=True),
        sa.Column("poller_beat_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint("(poller is null) = (poller_beat_at is null)", name=op.f("bots_poller_check")),
        sa.CheckConstraint("(stopped_at is null) = (stopped_why is null)", name=op.f("bots_stopped_check")),
        sa.PrimaryKeyConstraint("id", name=op.f("bots_pkey")),
        postgresql_with={"fillfactor": "50"},
    )
    op.create_table(
        "budgets",
        sa.Column("key", sa.Text(collation="C"), nullable=False),
        sa.Column("tat", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("'-infinity'"), nullable=False),
        sa.Column("held_until", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint("key like 'bot:%' or key like 'chat:%:%'", name=op.f("budgets_key_check")),
        sa.PrimaryKeyConstraint("key", name=op.f("budgets_pkey")),
        postgresql_with={"fillfactor": "10"},
    )
    op.create_table(
        "cards",
        sa.Column("task_id", sa.UUID(), nullable=False),
        sa.Column("bot_id", sa.BigInteger(), nullable=False),
        sa.Column("chat", sa.BigInteger(), nullable=False),
        sa.Column("message_id", sa.BigInteger(), nullable=True),
        sa.Column("locale", sa.Text(), nullable=False),
        sa.Column("shown", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint("locale in ('ru', 'en')", name=op.f("cards_locale_check")),
        sa.CheckConstraint("shown is null or message_id is not null", name=op.f("cards_shown_check")),
        sa.PrimaryKeyConstraint("task_id", name=op.f("cards_pkey")),
        postgresql_with={"fillfactor": "50"},
    )
    op.create_index("cards_message_idx", "cards", ["bot_id", "chat", "message_id"], unique=False)
    op.create_table(
        "chats",
        sa.Column("bot_id", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("username", sa.Text(), nullable=True),
        sa.Column("migrated_to", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("kind in ('private', 'group', 'supergroup', 'channel')", name=op.f("chats_kind_check")),
        sa.CheckConstraint(
            "migrated_to is null or (kind = 'group' and migrated_to <> id)", name=op.f("chats_migrated_check")
        ),
        sa.PrimaryKeyConstraint("bot_id", "id", name=op.f("chats_pkey")),
    )
    op.create_table(
        "invitations",
        sa.Column("code_hash", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("used_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("used_by", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("role in ('user', 'editor', 'admin')", name=op.f("invitations_role_check")),
        sa.CheckConstraint("(used_at is null) = (used_by is null)", name=op.f("invitations_used_check")),
        sa.PrimaryKeyConstraint("code_hash", name=op.f("invitations_pkey")),
    )
    op.create_table(
        "subscribers",
        sa.Column("bot_id", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column(
            "subscribed_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("unsubscribed_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("blocked_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("blocked_why", sa.Text(), nullable=True),
        sa.CheckConstraint("(blocked_at is null) = (blocked_why is null)", name=op.f("subscribers_blocked_check")),
        sa.PrimaryKeyConstraint("bot_id", "user_id", name=op.f("subscribers_pkey")),
    )
    op.create_table(
        "updates",
        sa.Column("bot_id", sa.BigInteger(), nullable=False),
        sa.Column("update_id", sa.BigInteger(), nullable=False),
        sa.Column("chat", sa.BigInteger(), nullable=False),
        sa.Column("payload", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "received_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("tries", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("handled_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("put_aside_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "put_aside_at is null or (handled_at is null and error is not null)", name=op.f("updates_put_aside_check")
        ),
        sa.CheckConstraint("tries >= 0", name=op.f("updates_tries_check")),
        sa.PrimaryKeyConstraint("bot_id", "update_id", name=op.f("updates_pkey")),
        postgresql_with={"fillfactor": "70"},
    )
    op.create_index(
        "updates_handled_idx",
        "updates",
        ["handled_at"],
        unique=False,
        postgresql_where=sa.text("handled_at is not null"),
    )
    op.create_index(
        "updates_put_aside_idx",
        "updates",
        ["put_aside_at"],
        unique=False,
        postgresql_where=sa.text("put_aside_at is not null"),
    )
    op.create_index(
        "updates_waiting_idx",
        "updates",
        ["bot_id", "chat", "update_id"],
        unique=False,
        postgresql_where=sa.text("handled_at is null and put_aside_at is null"),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("first_name", sa.Text(), nullable=True),
        sa.Column("username", sa.Text(), nullable=True),
        sa.Column("language_code", sa.Text(), nullable=True),
        sa.Column("language", sa.Text(), nullable=True),
        sa.Column("time_zone", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), nullable=True),
        sa.Column("granted_by", sa.BigInteger(), nullable=True),
        sa.Column(
            "created_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint("language in ('ru', 'en')", name=op.f("users_language_check")),
        sa.CheckConstraint("role in ('user', 'editor', 'admin')", name=op.f("users_role_check")),
        sa.CheckConstraint("time_zone <> ''", name=op.f("users_time_zone_check")),
        sa.CheckConstraint("granted_by is null or role is not null", name=op.f("users_granted_check")),
        sa.PrimaryKeyConstraint("id", name=op.f("users_pkey")),
    )
    op.create_index("users_role_idx", "users", ["role"], unique=False, postgresql_where=sa.text("role is not null"))


def downgrade() -> None:
    op.drop_index("users_role_idx", table_name="users", postgresql_where=sa.text("role is not null"))
    op.drop_table("users")
    op.drop_index(
        "updates_waiting_idx",
        table_name="updates",
        postgresql_where=sa.text("handled_at is null and put_aside_at is null"),
    )
    op.drop_index("updates_put_aside_idx", table_name="updates", postgresql_where=sa.text("put_aside_at is not null"))
    op.drop_index("updates_handled_idx", table_name="updates", postgresql_where=sa.text("handled_at is not null"))
    op.drop_table("updates")
    op.drop_table("subscribers")
    op.drop_table("invitations")
    op.drop_table("chats")
    op.drop_index("cards_message_idx", table_name="cards")
    op.drop_table("cards")
    op.drop_table("budgets")
    op.drop_table("bots")
